//! Rows that are committed to the log and not yet in the tables.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use byteview::ByteView;

use super::batch::Changes;

/// A row of an overlay: `None` says that the row is deleted.
pub(super) type Change = (ByteView, Option<ByteView>);

/// A range of keys.
pub(super) type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The changes of some consecutive batches.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    rows: BTreeMap<ByteView, Option<ByteView>>,
    /// Bytes of the batches: rows are views into them, so they stay in memory as long as the overlay.
    bytes: usize,
    /// The last batch in it.
    last: u64,
}

impl Overlay {
    pub(super) fn apply(&mut self, position: u64, payload: &ByteView) {
        self.rows.extend(Changes::of(payload));
        self.bytes += payload.len();
        self.last = position;
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Option<ByteView>> {
        self.rows.get(key)
    }

    /// The rows of a range in key order.
    pub(super) fn range(&self, range: Range<'_>) -> impl DoubleEndedIterator<Item = Change> {
        self.rows.range::<[u8], _>(range).map(|(key, value)| (key.clone(), value.clone()))
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

/// The overlay being written, and those that wait to be moved into the tables, oldest first.
#[derive(Debug, Default)]
pub(super) struct Overlays {
    pub(super) active: Overlay,
    pub(super) frozen: VecDeque<Arc<Overlay>>,
}

impl Overlays {
    /// What the newest overlay that knows the key says about it.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<ByteView>> {
        self.active.get(key).or_else(|| self.frozen.iter().rev().find_map(|overlay| overlay.get(key))).cloned()
    }

    /// Makes the active overlay immutable, so that it can be moved on or be part of a snapshot.
    pub(super) fn freeze(&mut self) {
        if !self.active.is_empty() {
            self.frozen.push_back(Arc::new(std::mem::take(&mut self.active)));
        }
    }

    pub(super) fn frozen_bytes(&self) -> usize {
        self.frozen.iter().map(|overlay| overlay.bytes()).sum()
    }

    pub(super) fn rows(&self) -> usize {
        self.active.len() + self.frozen.iter().map(|overlay| overlay.len()).sum::<usize>()
    }
}
