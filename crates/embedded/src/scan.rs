//! Pages in key order: the read side.

use std::ops::Bound;

use tally_core::rows::{JobId, Key, LimitKey, ListKey, ReplayKey, Row};
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
        Range::OpenJobs => {
            let ids = keys_with(store, &[keys::OPEN_JOBS], limit + 1)?;
            let jobs = ids.iter().filter_map(|key| key.get(1..9)?.try_into().ok().map(u64::from_be_bytes));
            rows(store, jobs.map(|id| Key::Job(JobId(id))))?
        }
        Range::EndedJobs { before } => {
            let (low, high) = ([keys::ENDED_JOBS], keys::ended_bound(*before));
            let due = keys_between(store, &low, &high, limit + 1)?;
            let jobs = due.iter().filter_map(|key| key.get(9..)?.try_into().ok().map(u64::from_be_bytes));
            rows(store, jobs.map(|id| Key::Job(JobId(id))))?
        }
        Range::ApiKeys => {
            let ids = keys_with(store, &[keys::API_KEYS], limit + 1)?;
            let ids = ids.iter().filter_map(|key| String::from_utf8(key[1..].to_vec()).ok());
            rows(store, ids.map(Key::ApiKey))?
        }
        Range::Replays { before } => {
            let (low, high) = ([keys::REPLAYS_BY_EXPIRY], keys::expiry_bound(*before));
            let due = keys_between(store, &low, &high, limit + 1)?;
            rows(store, due.iter().filter_map(|key| replay_key(key)).map(Key::Replay))?
        }
        Range::Limits { before } => {
            let (low, high) = ([keys::LIMITS_BY_TIME], keys::limit_bound(*before));
            let due = keys_between(store, &low, &high, limit + 1)?;
            rows(store, due.iter().filter_map(|key| limit_key(key)).map(Key::Limit))?
        }
        // The orders of boards are beside the store.
        Range::Board { .. } => Page::default(),
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
    for table in keys::ROWS.into_iter().filter(|table| *table >= first) {
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

fn keys_with(store: &Store, prefix: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, StoreError> {
    keys_between(store, prefix, &keys::after_prefix(prefix), limit)
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

fn limit_key(key: &[u8]) -> Option<LimitKey> {
    let text = std::str::from_utf8(key.get(9..)?).ok()?;
    let (name, key) = text.split_once('\0')?;
    Some(LimitKey { name: name.into(), key: key.into() })
}

fn replay_key(key: &[u8]) -> Option<ReplayKey> {
    let text = std::str::from_utf8(key.get(9..)?).ok()?;
    let (caller, key) = text.split_once('\0')?;
    Some(ReplayKey { caller: caller.into(), key: key.into() })
}
