//! Rows that are committed to the log and not yet in the tables.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    hash::{BuildHasher, Hasher, RandomState},
    ops::Bound,
    sync::Arc,
};

use byteview::ByteView;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{batch::Changes, order::Order, sort::order_of};

/// A row of an overlay: `None` says that the row is deleted.
pub(super) type Change = (ByteView, Option<ByteView>);

/// A range of keys.
pub(super) type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// So many unsorted keys are worth sorting in the background, so that no scan has to sort more.
const UNSORTED_MAX: usize = 16 << 10;

/// The changes of some consecutive batches.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    rows: HashMap<ByteView, Option<ByteView>, Seed>,
    order: Arc<Order>,
    /// Bytes of the batches: rows are views into them, so they stay in memory as long as the overlay.
    bytes: usize,
    /// The last batch in it.
    last: u64,
}

impl Overlay {
    /// An overlay of batches that come from the log.
    pub(super) fn of(bytes: usize, batches: &[(u64, ByteView)]) -> Self {
        // Growing a map moves every row each time.
        const ROW_BYTES_USUAL: usize = 64;
        let mut overlay = Self::default();
        overlay.rows.reserve(bytes / ROW_BYTES_USUAL);
        for (position, payload) in batches {
            overlay.apply(*position, payload);
        }
        overlay
    }

    /// Takes in a batch. Says whether enough keys have gathered to sort them.
    pub(super) fn apply(&mut self, position: u64, payload: &ByteView) -> bool {
        let mut fresh = self.order.fresh();
        for (key, value) in Changes::of(payload) {
            match self.rows.entry(key) {
                Entry::Occupied(mut row) => {
                    row.insert(value);
                }
                Entry::Vacant(row) => {
                    if let Some(fresh) = &mut fresh {
                        fresh.push(row.key().clone());
                    }
                    row.insert(value);
                }
            }
        }
        self.bytes += payload.len();
        self.last = position;
        fresh.is_some_and(|fresh| fresh.len() > UNSORTED_MAX)
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Option<ByteView>> {
        self.rows.get(key)
    }

    /// The rows of a range in key order or in reverse.
    pub(super) fn range(&self, range: Range<'_>, reverse: bool) -> impl Iterator<Item = Change> + '_ {
        let all = || self.rows.keys().cloned().collect();
        self.order.range(range, reverse, all).map(|key| {
            let value = self.rows.get(&key).expect("every ordered key has a row").clone();
            (key, value)
        })
    }

    /// All rows in key order, for one pass.
    pub(super) fn all(&self) -> impl Iterator<Item = Change> + '_ {
        let rows: Vec<_> = self.rows.iter().collect();
        let order = order_of(rows.len(), |at| rows[at].0);
        order.into_iter().map(move |at| (rows[at].0.clone(), rows[at].1.clone()))
    }

    /// To sort its keys without holding a lock on the overlay.
    pub(super) fn order(&self) -> Arc<Order> {
        self.order.clone()
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
            // The next one will be about as large.
            let capacity = self.active.rows.len() / 8 * 7;
            let seed = *self.active.rows.hasher();
            let next = Overlay {
                rows: HashMap::with_capacity_and_hasher(capacity, seed),
                order: Arc::new(self.active.order.next()),
                ..Overlay::default()
            };
            self.frozen.push_back(Arc::new(std::mem::replace(&mut self.active, next)));
        }
    }

    /// Adds overlays that are newer than those there are.
    pub(super) fn add_frozen(&mut self, overlays: impl IntoIterator<Item = Overlay>) {
        let some = overlays.into_iter().filter(|overlay| !overlay.is_empty());
        self.frozen.extend(some.map(Arc::new));
    }

    pub(super) fn frozen_bytes(&self) -> usize {
        self.frozen.iter().map(|overlay| overlay.bytes()).sum()
    }

    pub(super) fn rows(&self) -> usize {
        self.active.len() + self.frozen.iter().map(|overlay| overlay.len()).sum::<usize>()
    }
}

/// Hashes a key in one go. Seeded, because users choose parts of keys and must not be able to choose
/// collisions.
#[derive(Debug, Clone, Copy)]
struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Seed {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0)
    }
}

struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    /// Comes before the bytes; their own hash covers their length.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
