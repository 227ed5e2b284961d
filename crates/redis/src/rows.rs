//! Rows as text: what a user sees in redis-cli, and what a commit compares.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use tally_core::Name;
use tally_core::meta::Meta;
use tally_core::rows::{Cell, Cells, Column, Edge, Key, Row, RowKind, Type};
use tally_core::time::Stamp;
use tally_engine::StoreError;

/// Scores are floating-point numbers, and exact up to this.
const EXACT_MAX: u64 = 1 << 53;

/// What is attached to an edge.
#[derive(Default, Serialize, Deserialize)]
struct Data {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta: Option<Meta>,
    /// When it was made, where a score cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<u64>,
}

/// An edge's score.
pub(crate) fn score(created: Stamp) -> String {
    match created.0 {
        0 => "0".into(),
        exact if exact <= EXACT_MAX => format!("-{exact}"),
        // As Redis writes it back.
        large => format!("-{}", large as f64),
    }
}

/// Whether anything has to be attached to an edge.
pub(crate) fn has_data(edge: &Edge) -> bool {
    edge.kind.is_some() || edge.meta.is_some() || edge.created.0 > EXACT_MAX
}

/// What is attached to an edge, or nothing.
pub(crate) fn data(edge: &Edge) -> Result<Option<String>, StoreError> {
    if !has_data(edge) {
        return Ok(None);
    }
    let created = Some(edge.created.0).filter(|created| *created > EXACT_MAX);
    text(&Data { kind: edge.kind.clone(), meta: edge.meta.clone(), created }).map(Some)
}

/// An edge as it was found.
pub(crate) fn edge(hidden: bool, score: &str, data: &str) -> Result<Edge, StoreError> {
    let data: Data = if data.is_empty() { Data::default() } else { read(data)? };
    let created = match data.created {
        Some(created) => created,
        None => match score.trim_start_matches('-') {
            // Too large to be exact; the side that has the data knows better.
            large if large.contains('e') => large.parse::<f64>().map_err(|_| unreadable(score))? as u64,
            exact => exact.parse().map_err(|_| unreadable(score))?,
        },
    };
    Ok(Edge { created: Stamp(created), kind: data.kind, meta: data.meta, hidden })
}

/// A row of any other kind as text: its only column; numbers with spaces between them, where it is nothing but numbers; or a
/// JSON object of its columns without those that are null.
pub(crate) fn row_text(row: &Row) -> Result<String, StoreError> {
    if let Row::Edge(_) = row {
        return Err(StoreError::Broken("an edge is not one text".into()));
    }
    let (columns, cells) = (row.kind().declared().columns, row.to_cells());
    match cells.as_slice() {
        [cell] => text(cell),
        cells if is_numbers(columns) => Ok(cells.iter().map(Cell::to_string).collect::<Vec<_>>().join(" ")),
        cells => {
            let pairs = columns.iter().zip(cells).filter(|(_, cell)| **cell != Cell::Null);
            text(&Pairs(pairs.map(|((name, _), cell)| (*name, cell)).collect()))
        }
    }
}

/// And back again.
pub(crate) fn row(key: &Key, text: &str) -> Result<Row, StoreError> {
    read_columns(key.kind(), text).ok_or_else(|| unreadable(text))
}

fn read_columns(kind: RowKind, text: &str) -> Option<Row> {
    let columns = kind.declared().columns;
    if let [(_, of)] = columns {
        return Row::from_cells(kind, &mut Cells::new(vec![Cell::from_json(*of, text)?]));
    }
    if is_numbers(columns) {
        let cells = text.split(' ').zip(columns).map(|(number, (_, of))| Cell::from_text(*of, number));
        return Row::from_cells(kind, &mut Cells::new(cells.collect::<Option<_>>()?));
    }
    let held: HashMap<&str, &RawValue> = serde_json::from_str(text).ok()?;
    let cell = |(name, of): &Column| held.get(name).map_or(Some(Cell::Null), |raw| Cell::from_json(*of, raw.get()));
    Row::from_cells(kind, &mut Cells::new(columns.iter().map(cell).collect::<Option<_>>()?))
}

/// There are many rows of such kinds.
fn is_numbers(columns: &[Column]) -> bool {
    columns.iter().all(|(_, of)| matches!(of, Type::Number | Type::Signed))
}

/// A JSON object whose fields are in this order: texts are compared.
struct Pairs<'a>(Vec<(&'static str, &'a Cell<'a>)>);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().copied())
    }
}

fn text(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Broken(error.to_string()))
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| unreadable(text))
}

pub(crate) fn unreadable(text: &str) -> StoreError {
    let shown: String = text.chars().take(80).collect();
    StoreError::Broken(format!("a key of Tally holds what Tally did not write: {shown}"))
}
