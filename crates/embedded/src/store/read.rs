//! Reads of the newest rows.

use std::sync::Arc;

use byteview::ByteView;

use super::{
    error::Result,
    merge::{Merge, Row, Source},
    overlay::{Change, Overlay, Range},
    shared::Shared,
    tables::LATEST,
};

pub(super) fn get(shared: &Shared, key: &[u8]) -> Result<Option<ByteView>> {
    let found = shared.overlays().get(key);
    match found {
        Some(value) => Ok(value),
        // A row that moved from an overlay into the tables meanwhile is found there.
        None => shared.tables.get(key, LATEST),
    }
}

pub(super) fn get_many<K: AsRef<[u8]>>(shared: &Shared, keys: &[K]) -> Result<Vec<Option<ByteView>>> {
    let (found, moment) = {
        let overlays = shared.overlays();
        let found: Vec<_> = keys.iter().map(|key| overlays.get(key.as_ref())).collect();
        // Pinned under the lock: the tables hold nothing then that was not frozen before.
        let missing = found.iter().any(Option::is_none);
        (found, missing.then(|| shared.tables.pin()))
    };
    let values = keys
        .iter()
        .zip(found)
        .map(|(key, found)| match (found, moment) {
            (Some(value), _) => Ok(value),
            (None, Some(moment)) => shared.tables.get(key.as_ref(), moment),
            (None, None) => Ok(None),
        })
        .collect();
    if let Some(moment) = moment {
        shared.tables.unpin(moment);
    }
    values
}

pub(super) fn scan(shared: &Shared, range: Range<'_>, limit: usize, reverse: bool) -> Result<Vec<Row>> {
    if limit == 0 || is_empty(range) {
        return Ok(Vec::new());
    }
    let (active, frozen, tables) = {
        let overlays = shared.overlays();
        let active = first_rows(&overlays.active, range, limit, reverse);
        let frozen: Vec<Arc<Overlay>> = overlays.frozen.iter().rev().cloned().collect();
        // Opened under the lock: the tables hold nothing then that was not frozen before.
        let tables = shared.tables.range(range, LATEST, reverse);
        (active, frozen, tables)
    };
    let mut sources: Vec<Source<'_>> = vec![Box::new(active.into_iter().map(Ok))];
    sources.extend(frozen.iter().map(|overlay| Box::new(overlay.range(range, reverse).map(Ok)) as Source<'_>));
    sources.push(tables);
    Merge::new(sources, reverse)?.take(limit).collect()
}

/// The rows of the active overlay that can be among the first `limit` of all: it is copied, because it must
/// not stay locked while tables are read.
fn first_rows(active: &Overlay, range: Range<'_>, limit: usize, reverse: bool) -> Vec<Change> {
    let mut live = 0;
    let enough = |(_, value): &Change| {
        let more = live < limit;
        live += usize::from(value.is_some());
        more
    };
    active.range(range, reverse).take_while(enough).collect()
}

/// Ranges that end before they start are empty rather than a panic of the map.
pub(super) fn is_empty((low, high): Range<'_>) -> bool {
    use std::ops::Bound::{Excluded, Included, Unbounded};

    match (low, high) {
        (Unbounded, _) | (_, Unbounded) => false,
        (Included(low), Included(high)) => low > high,
        (Included(low) | Excluded(low), Included(high) | Excluded(high)) => low >= high,
    }
}
