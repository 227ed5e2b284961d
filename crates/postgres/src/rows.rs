//! Rows as the texts that travel, and back.

use std::borrow::Cow;

use tally_core::rows::{Cell, Key, Row, RowKind, Type};
use tally_core::time::Timestamp;
use tally_core::{Day, rows};
use tally_engine::StoreError;

use crate::cells::Cells;
use crate::error::unreadable;
use crate::numbers;

/// A value as text, as [`crate::cells`] turns it into the column's type.
pub(crate) fn text(cell: Cell<'_>) -> Result<Option<String>, StoreError> {
    Ok(Some(match cell {
        Cell::Null => return Ok(None),
        Cell::Text(text) | Cell::Json(text) => text.into_owned(),
        Cell::Number(number) => int(number)?,
        Cell::Taken(_) => return Err(StoreError::Broken("a number that is not given yet cannot be kept".into())),
        Cell::Signed(number) => number.to_string(),
        Cell::Numbers(numbers) => list(numbers.iter().copied())?,
        Cell::Time(at) => at.0.to_string(),
        Cell::Times(times) => list(times.iter().map(|at| at.0))?,
        Cell::Flag(flag) => flag.to_string(),
        Cell::Day(day) => day.0.to_string(),
        Cell::Bytes(bytes) => hex(&bytes),
    }))
}

fn int(value: u64) -> Result<String, StoreError> {
    let value = i64::try_from(value).map_err(|_| StoreError::Broken(format!("{value} is too large to be stored")))?;
    Ok(value.to_string())
}

/// A list as PostgreSQL writes arrays.
fn list(values: impl Iterator<Item = u64>) -> Result<String, StoreError> {
    let values: Result<Vec<String>, StoreError> = values.map(int).collect();
    Ok(format!("{{{}}}", values?.join(",")))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |four: u8| char::from(DIGITS[usize::from(four)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The key's columns.
pub(crate) fn key_cells(key: &Key) -> Cells {
    // No key holds a number that is too large: those are counted from 0.
    key.to_cells().into_iter().map(|cell| text(cell).unwrap_or_default()).collect()
}

/// All of a row's columns.
pub(crate) fn write(key: &Key, row: &Row) -> Result<Cells, StoreError> {
    let mut cells = key_cells(key);
    for cell in row.to_cells() {
        cells.push(text(cell)?);
    }
    Ok(cells)
}

/// The same of a row that carries numbers of those that the commit takes, so many.
pub(crate) fn write_numbered(key: &Key, row: &Row, count: u32) -> Result<Cells, StoreError> {
    let cells = key.to_cells().into_iter().chain(row.to_cells());
    let numbered = |cell| match cell {
        Cell::Taken(place) => Ok(Some(numbers::text(place, count))),
        other => text(other),
    };
    cells.map(numbered).collect()
}

/// A row as [`crate::cells::Table::shown`] gives it.
pub(crate) fn read(kind: RowKind, shown: &str) -> Result<(Key, Row), StoreError> {
    let declared = kind.declared();
    let bad = || unreadable(&format!("a row of the table {}", declared.name));
    let texts: Cells = serde_json::from_str(shown).map_err(|_| bad())?;
    let columns = declared.key.iter().chain(declared.columns);
    let cells = texts.into_iter().zip(columns).map(|(text, (_, of))| cell(*of, text).ok_or_else(bad));
    let mut cells = rows::Cells::new(cells.collect::<Result<_, _>>()?);
    let key = Key::from_cells(kind, &mut cells).ok_or_else(bad)?;
    let row = Row::from_cells(kind, &mut cells).ok_or_else(bad)?;
    Ok((key, row))
}

pub(crate) fn cell(of: Type, text: Option<String>) -> Option<Cell<'static>> {
    let Some(text) = text else { return Some(Cell::Null) };
    Some(match of {
        Type::Text => Cell::Text(Cow::Owned(text)),
        Type::Json => Cell::Json(Cow::Owned(text)),
        Type::Number => Cell::Number(text.parse().ok()?),
        Type::Signed => Cell::Signed(text.parse().ok()?),
        Type::Numbers => Cell::Numbers(Cow::Owned(numbers(&text)?)),
        Type::Time => Cell::Time(Timestamp(text.parse().ok()?)),
        Type::Times => Cell::Times(Cow::Owned(numbers(&text)?.into_iter().map(Timestamp).collect())),
        Type::Flag => Cell::Flag(text.parse().ok()?),
        Type::Day => Cell::Day(Day(text.parse().ok()?)),
        Type::Bytes => Cell::Bytes(Cow::Owned(bytes(&text)?)),
    })
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    let inside = text.trim_start_matches('{').trim_end_matches('}');
    inside.split_terminator(',').map(|number| number.parse().ok()).collect()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let four = |digit: u8| char::from(digit).to_digit(16);
    let byte = |two: &[u8]| Some((four(*two.first()?)? << 4 | four(*two.get(1)?)?) as u8);
    text.as_bytes().chunks(2).map(byte).collect()
}
