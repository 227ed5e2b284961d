//! Rows as bytes. Edges and totals are written by hand, because there are many; the rest as it is declared.

use std::sync::Arc;

use tally_core::rows::{Edge, EdgeKey, Key, Row, RowKind, Side};
use tally_core::time::Stamp;
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::StoreError;

use crate::{cells, keys};

const HAS_KIND: u8 = 1;
const HAS_META: u8 = 2;
const HIDDEN: u8 = 4;

fn unreadable(what: &str) -> StoreError {
    StoreError::Broken(format!("{what} cannot be read"))
}

/// A row's value.
pub(crate) fn write_row(row: &Row) -> Vec<u8> {
    if let Row::Edge(edge) = row {
        write_edge(edge)
    } else if let Row::Counter(value) = row {
        write_total(*value)
    } else {
        cells::write(row)
    }
}

/// Reads a row back; its key says what it is.
pub(crate) fn read_row(key: &Key, bytes: &[u8]) -> Result<Row, StoreError> {
    Ok(match key.kind() {
        RowKind::Edge => Row::Edge(read_edge(bytes)?),
        RowKind::Counter => Row::Counter(read_total(bytes)?),
        kind => cells::read(kind, bytes).ok_or_else(|| unreadable(&format!("the row {key:?}")))?,
    })
}

/// An edge: its stamp, then what its list entries carry too.
fn write_edge(edge: &Edge) -> Vec<u8> {
    let mut bytes = edge.created.0.to_be_bytes().to_vec();
    bytes.extend_from_slice(&write_attached(edge));
    bytes
}

/// Reads an edge.
pub(crate) fn read_edge(bytes: &[u8]) -> Result<Edge, StoreError> {
    let (stamp, rest) = bytes.split_at_checked(8).ok_or_else(|| unreadable("an edge"))?;
    read_attached(read_stamp(stamp)?, rest)
}

/// What an edge carries beyond its stamp. A plain like carries nothing, in no bytes at all.
pub(crate) fn write_attached(edge: &Edge) -> Vec<u8> {
    let mut flags = if edge.hidden { HIDDEN } else { 0 };
    flags |= if edge.kind.is_some() { HAS_KIND } else { 0 };
    flags |= if edge.meta.is_some() { HAS_META } else { 0 };
    if flags == 0 {
        return Vec::new();
    }
    let mut bytes = vec![flags];
    if let Some(kind) = &edge.kind {
        bytes.extend_from_slice(kind.as_str().as_bytes());
        bytes.push(0);
    }
    if let Some(meta) = &edge.meta {
        bytes.extend_from_slice(serde_json::to_string(&**meta).unwrap_or_default().as_bytes());
    }
    bytes
}

/// Reads it back.
pub(crate) fn read_attached(created: Stamp, bytes: &[u8]) -> Result<Edge, StoreError> {
    let Some((flags, mut rest)) = bytes.split_first() else {
        return Ok(Edge { created, kind: None, meta: None, hidden: false });
    };
    let mut kind = None;
    if flags & HAS_KIND != 0 {
        let end = rest.iter().position(|byte| *byte == 0).ok_or_else(|| unreadable("an edge's kind"))?;
        let text = std::str::from_utf8(&rest[..end]).map_err(|_| unreadable("an edge's kind"))?;
        kind = Some(Name::new(text).map_err(|_| unreadable("an edge's kind"))?);
        rest = &rest[end + 1..];
    }
    let mut meta = None;
    if flags & HAS_META != 0 {
        meta = Some(Arc::new(serde_json::from_slice(rest).map_err(|_| unreadable("an edge's meta"))?));
    }
    Ok(Edge { created, kind, meta, hidden: flags & HIDDEN != 0 })
}

/// An edge from its entry in a list.
pub(crate) fn read_entry(side: Side, key: &[u8], value: &[u8]) -> Result<(EdgeKey, Edge), StoreError> {
    let bad = || unreadable("a list entry");
    let (id, relation, stamp, other) = keys::split_entry(key).ok_or_else(bad)?;
    let (object, subject) = match side {
        Side::Object => (id, other),
        Side::Subject => (other, id),
    };
    let key = EdgeKey {
        object: ObjectId::new(object).map_err(|_| bad())?,
        relation: Name::new(relation).map_err(|_| bad())?,
        subject: SubjectId::new(subject).map_err(|_| bad())?,
    };
    Ok((key, read_attached(stamp, value)?))
}

/// A total: the bytes that it needs, no more.
pub(crate) fn write_total(value: i64) -> Vec<u8> {
    let bytes = value.to_le_bytes();
    let used = if value < 0 { 8 } else { 8 - value.leading_zeros() as usize / 8 };
    bytes[..used].to_vec()
}

/// Reads a total.
pub(crate) fn read_total(bytes: &[u8]) -> Result<i64, StoreError> {
    let mut whole = [0; 8];
    whole.get_mut(..bytes.len()).ok_or_else(|| unreadable("a total"))?.copy_from_slice(bytes);
    Ok(i64::from_le_bytes(whole))
}

/// Reads a stamp.
pub(crate) fn read_stamp(bytes: &[u8]) -> Result<Stamp, StoreError> {
    let bytes = bytes.try_into().map_err(|_| unreadable("a stamp"))?;
    Ok(Stamp(u64::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn edges_and_totals_come_back_as_they_went_in() {
        let meta = json!({"memo": "안녕", "n": 1}).as_object().cloned().map(Arc::new);
        for (kind, meta, hidden) in [
            (None, None, false),
            (None, None, true),
            (Some(Name::new("wow").unwrap()), None, false),
            (Some(Name::new("wow").unwrap()), meta.clone(), true),
            (None, meta, false),
        ] {
            let edge = Edge { created: Stamp(77), kind, meta, hidden };
            assert_eq!(read_edge(&write_edge(&edge)).unwrap(), edge);
        }
        for value in [0, 1, 127, 128, 255, 256, 65_535, 65_536, i64::MAX, -1, i64::MIN] {
            assert_eq!(read_total(&write_total(value)).unwrap(), value);
        }
        assert!(write_attached(&Edge { created: Stamp(1), kind: None, meta: None, hidden: false }).is_empty());
    }

    #[test]
    fn broken_bytes_are_an_error_and_not_a_panic() {
        for bytes in [&b"short"[..], b"12345678\x01nokindend", b"12345678\x02{", b"12345678\x01\xff\0"] {
            assert!(read_edge(bytes).is_err());
        }
        assert!(read_total(&[0; 9]).is_err());
    }
}
