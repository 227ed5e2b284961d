//! The columns of a row as bytes, one after the other.
//!
//! A byte says first which of them are null, unless there is but one column. Numbers and times have eight bytes; texts, documents,
//! bytes and lists have their length in four, but for the last column, which ends where the row does.

use std::borrow::Cow;

use tally_core::Day;
use tally_core::rows::{Cell, Cells, Row, RowKind, Type};
use tally_core::time::Timestamp;

pub(crate) fn write(row: &Row) -> Vec<u8> {
    let width = row.kind().declared().columns.len();
    let mut bytes = Vec::with_capacity(64);
    if width > 1 {
        bytes.push(0);
    }
    let mut place = 0;
    row.cells(|cell| {
        if cell == Cell::Null && width > 1 {
            bytes[0] |= 1 << place;
        }
        place += 1;
        put(&mut bytes, &cell, place == width);
    });
    bytes
}

fn put(bytes: &mut Vec<u8>, cell: &Cell<'_>, is_last: bool) {
    match cell {
        // No number reaches a store before it is given.
        Cell::Null | Cell::Taken(_) => {}
        Cell::Number(number) | Cell::Time(Timestamp(number)) => bytes.extend_from_slice(&number.to_be_bytes()),
        Cell::Signed(number) => bytes.extend_from_slice(&number.to_be_bytes()),
        Cell::Day(day) => bytes.extend_from_slice(&day.0.to_be_bytes()),
        Cell::Flag(flag) => bytes.push(u8::from(*flag)),
        Cell::Text(text) | Cell::Json(text) => put_long(bytes, text.as_bytes(), is_last),
        Cell::Bytes(long) => put_long(bytes, long, is_last),
        Cell::Numbers(numbers) => {
            put_long(bytes, &numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>(), is_last)
        }
        Cell::Times(times) => {
            put_long(bytes, &times.iter().flat_map(|at| at.0.to_be_bytes()).collect::<Vec<u8>>(), is_last)
        }
    }
}

fn put_long(bytes: &mut Vec<u8>, long: &[u8], is_last: bool) {
    if !is_last {
        // What is larger than a batch may be was refused long before.
        bytes.extend_from_slice(&u32::try_from(long.len()).unwrap_or(u32::MAX).to_be_bytes());
    }
    bytes.extend_from_slice(long);
}

pub(crate) fn read(kind: RowKind, bytes: &[u8]) -> Option<Row> {
    let columns = kind.declared().columns;
    let (nulls, mut rest) = if columns.len() > 1 {
        let (nulls, rest) = bytes.split_first()?;
        (*nulls, rest)
    } else {
        (0, bytes)
    };
    let mut cells = Vec::with_capacity(columns.len());
    for (place, (_, of)) in columns.iter().enumerate() {
        let is_null = nulls & (1 << place) != 0;
        cells.push(if is_null { Cell::Null } else { take(*of, &mut rest, place + 1 == columns.len())? });
    }
    rest.is_empty().then(|| Row::from_cells(kind, &mut Cells::new(cells))).flatten()
}

fn take<'a>(of: Type, rest: &mut &'a [u8], is_last: bool) -> Option<Cell<'a>> {
    Some(match of {
        Type::Number => Cell::Number(u64::from_be_bytes(fixed(rest)?)),
        Type::Signed => Cell::Signed(i64::from_be_bytes(fixed(rest)?)),
        Type::Time => Cell::Time(Timestamp(u64::from_be_bytes(fixed(rest)?))),
        Type::Day => Cell::Day(Day(u32::from_be_bytes(fixed(rest)?))),
        Type::Flag => Cell::Flag(fixed::<1>(rest)? == [1]),
        Type::Text => Cell::Text(Cow::Borrowed(std::str::from_utf8(long(rest, is_last)?).ok()?)),
        Type::Json => Cell::Json(Cow::Borrowed(std::str::from_utf8(long(rest, is_last)?).ok()?)),
        Type::Bytes => Cell::Bytes(Cow::Borrowed(long(rest, is_last)?)),
        Type::Numbers => Cell::Numbers(Cow::Owned(numbers(long(rest, is_last)?)?)),
        Type::Times => Cell::Times(Cow::Owned(numbers(long(rest, is_last)?)?.into_iter().map(Timestamp).collect())),
    })
}

fn fixed<const BYTES: usize>(rest: &mut &[u8]) -> Option<[u8; BYTES]> {
    let (bytes, left) = rest.split_first_chunk::<BYTES>()?;
    *rest = left;
    Some(*bytes)
}

fn long<'a>(rest: &mut &'a [u8], is_last: bool) -> Option<&'a [u8]> {
    let length = if is_last { rest.len() } else { usize::try_from(u32::from_be_bytes(fixed(rest)?)).ok()? };
    let (bytes, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(bytes)
}

fn numbers(bytes: &[u8]) -> Option<Vec<u64>> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    rest.is_empty().then(|| numbers.iter().map(|bytes| u64::from_be_bytes(*bytes)).collect())
}
