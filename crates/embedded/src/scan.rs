//! Pages in key order: the read side.

use std::ops::Bound;

use tally_core::rows::{Key, ListKey, Partitions, Row, RowKind};
use tally_core::time::Timestamp;
use tally_engine::{Page, Place, Range, StoreError};

use crate::commit::marked;
use crate::store::Store;
use crate::{codec, keys, unavailable};

/// One page of a range.
pub(crate) fn scan(store: &Store, range: &Range, limit: usize) -> Result<Page, StoreError> {
    let (mut page, mark) = marked(store, || page_of(store, range, limit))?;
    page.mark = mark;
    page.more = page.items.len() > limit;
    page.items.truncate(limit);
    Ok(page)
}

/// The rows of a page and one more, not marked yet.
fn page_of(store: &Store, range: &Range, limit: usize) -> Result<Page, StoreError> {
    Ok(match range {
        Range::List { list, after } => scan_list(store, list, after.as_ref(), limit)?,
        Range::Due { kind, partitions, from, before } => {
            let due = due(store, *kind, *partitions, (*from, *before), limit + 1)?;
            rows(store, due.into_iter())?
        }
        Range::Few(kind) => {
            let table = keys::table(*kind);
            let found = keys_between(store, &table, &keys::after_prefix(&table), limit + 1)?;
            rows(store, found.iter().filter_map(|bytes| keys::read_row(bytes)))?
        }
        // Orders are beside the store.
        Range::Order { .. } => Page::default(),
        Range::Rows { after } => every_row(store, after.as_ref(), limit.saturating_add(1))?,
    })
}

fn scan_list(store: &Store, list: &ListKey, after: Option<&Place>, limit: usize) -> Result<Page, StoreError> {
    let prefix = keys::list_prefix(list);
    let from = after.map(|place| keys::place(list, place));
    let low = from.as_ref().map_or(Bound::Included(&prefix[..]), |from| Bound::Excluded(&from[..]));
    let high = keys::after_prefix(&prefix);
    let found = store.scan((low, Bound::Excluded(&high)), limit + 1, false).map_err(unavailable)?;
    let mut items = Vec::with_capacity(found.len());
    for (key, value) in found {
        let (key, edge) = codec::read_entry(list.side, &key, &value)?;
        items.push((Key::Edge(key), Row::Edge(edge)));
    }
    Ok(Page { items, ..Page::default() })
}

/// Table by table, each in the order of its keys.
fn every_row(store: &Store, after: Option<&Key>, limit: usize) -> Result<Page, StoreError> {
    let from = after.map(keys::row);
    let first = from.as_ref().map_or(0, |from| from[0]);
    let mut items = Vec::new();
    for table in keys::ROWS.iter().copied().filter(|table| *table >= first) {
        let (start, end) = ([table], [table + 1]);
        let low = match &from {
            Some(from) if table == first => Bound::Excluded(&from[..]),
            _ => Bound::Included(&start[..]),
        };
        let found = store.scan((low, Bound::Excluded(&end)), limit - items.len(), false).map_err(unavailable)?;
        for (bytes, value) in found {
            let key = keys::read_row(&bytes).ok_or_else(|| keys::unreadable(&bytes))?;
            let row = codec::read_row(&key, &value)?;
            items.push((key, row));
        }
    }
    Ok(Page { items, ..Page::default() })
}

/// What is due in each of the partitions, as one: soonest first, and then by key.
fn due(
    store: &Store,
    kind: RowKind,
    partitions: Partitions,
    (from, before): (Timestamp, Timestamp),
    limit: usize,
) -> Result<Vec<Key>, StoreError> {
    let mut due = Vec::new();
    for partition in partitions.and(kind.partitions()).iter() {
        let (low, high) = (keys::due_bound(kind, partition, from), keys::due_bound(kind, partition, before));
        if low < high {
            let found = keys_between(store, &low, &high, limit)?;
            due.extend(found.iter().filter_map(|bytes| keys::read_due(kind, bytes)));
        }
    }
    due.sort();
    due.truncate(limit);
    Ok(due.into_iter().map(|(_, key)| key).collect())
}

fn keys_between(store: &Store, low: &[u8], high: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, StoreError> {
    let found = store.scan((Bound::Included(low), Bound::Excluded(high)), limit, false).map_err(unavailable)?;
    Ok(found.into_iter().map(|(key, _)| key.to_vec()).collect())
}

/// Looks the rows up. One that has gone meanwhile is left out.
fn rows(store: &Store, wanted: impl Iterator<Item = Key>) -> Result<Page, StoreError> {
    let mut items = Vec::new();
    for key in wanted {
        if let Some(bytes) = store.get(&keys::row(&key)).map_err(unavailable)? {
            let row = codec::read_row(&key, &bytes)?;
            items.push((key, row));
        }
    }
    Ok(Page { items, ..Page::default() })
}
