//! Rows as text: what a user sees in redis-cli, and what a commit compares.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tally_core::Name;
use tally_core::meta::Meta;
use tally_core::rows::{Edge, Key, Row};
use tally_core::time::Stamp;
use tally_engine::StoreError;

use crate::counting;

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

/// A row of any other kind as text.
pub(crate) fn row_text(row: &Row) -> Result<String, StoreError> {
    match row {
        Row::Object(row) => text(row),
        Row::Subject(row) => text(row),
        Row::Replay(row) => text(row),
        Row::Job(row) => text(row),
        Row::ApiKey(row) => text(row),
        Row::Counter(value) => Ok(value.to_string()),
        Row::Touched(row) => text(row),
        Row::Unique(row) => text(row),
        Row::Limit(row) => text(row),
        Row::Sheet(row) => text(row),
        Row::Day(row) => text(row),
        Row::Chunk(row) => text(row),
        Row::Attendee(row) => text(row),
        Row::Board(row) => text(row),
        Row::Names(row) => text(row),
        Row::Score(row) => Ok(counting::score_text(*row)),
        Row::Edge(_) => Err(StoreError::Broken("an edge is not one text".into())),
    }
}

/// And back again.
pub(crate) fn row(key: &Key, text: &str) -> Result<Row, StoreError> {
    Ok(match key {
        Key::Object(_) => Row::Object(read(text)?),
        Key::Subject(_) => Row::Subject(read(text)?),
        Key::Replay(_) => Row::Replay(read(text)?),
        Key::Job(_) => Row::Job(read(text)?),
        Key::ApiKey(_) => Row::ApiKey(read(text)?),
        Key::Counter(_) => Row::Counter(read(text)?),
        Key::Touched(_) => Row::Touched(read(text)?),
        Key::Unique(_) => Row::Unique(read(text)?),
        Key::Limit(_) => Row::Limit(read(text)?),
        Key::Sheet(_) => Row::Sheet(read(text)?),
        Key::Day(..) => Row::Day(read(text)?),
        Key::Chunk(_) => Row::Chunk(read(text)?),
        Key::Attendee(..) => Row::Attendee(read(text)?),
        Key::Board(_) => Row::Board(read(text)?),
        Key::Names => Row::Names(read(text)?),
        Key::Score(_) => Row::Score(counting::score_of(text)?),
        Key::Edge(_) => return Err(unreadable(text)),
    })
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
