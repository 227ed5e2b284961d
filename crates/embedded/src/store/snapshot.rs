//! Everything as of one moment.

use std::{ops::Bound, sync::Arc};

use byteview::ByteView;

use super::{
    Position,
    error::Result,
    merge::{Merge, Row, Source},
    overlay::{Overlay, Range},
    read::is_empty,
    shared::Shared,
    tables::Moment,
};

/// All rows as of one moment, see [`super::Store::snapshot`]. Disk space of rows replaced since is only freed
/// once it is dropped.
pub struct Snapshot {
    shared: Arc<Shared>,
    /// Newest first.
    overlays: Vec<Arc<Overlay>>,
    moment: Moment,
    position: Position,
    taken_back: usize,
}

impl Snapshot {
    pub(super) fn take(shared: Arc<Shared>) -> Self {
        let (overlays, moment, at) = {
            // Holding the writer back for this instant ties the position to the rows.
            let writer = shared.writer();
            let mut overlays = shared.overlays_mut();
            overlays.freeze();
            let frozen = overlays.frozen.iter().rev().cloned().collect();
            (frozen, shared.tables.pin(), writer.moment())
        };
        shared.nudge_mover();
        Self { shared, overlays, moment, position: at.position, taken_back: at.taken_back }
    }

    /// The last batch that it contains.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// How often batches had been taken back when it was taken, see [`super::Store::moment`].
    #[must_use]
    pub fn taken_back(&self) -> usize {
        self.taken_back
    }

    /// The value of a row.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<ByteView>> {
        match self.overlays.iter().find_map(|overlay| overlay.get(key)) {
            Some(value) => Ok(value.clone()),
            None => self.shared.tables.get(key, self.moment),
        }
    }

    /// Up to `limit` rows of a range, in key order or in reverse.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn scan(&self, range: (Bound<&[u8]>, Bound<&[u8]>), limit: usize, reverse: bool) -> Result<Vec<Row>> {
        self.merge(range, reverse)?.take(limit).collect()
    }

    /// Every row in key order.
    ///
    /// # Errors
    /// The tables cannot be read; also while iterating.
    pub fn iter(&self) -> Result<impl Iterator<Item = Result<Row>> + '_> {
        self.merge((Bound::Unbounded, Bound::Unbounded), false)
    }

    fn merge<'a>(&'a self, range: Range<'a>, reverse: bool) -> Result<Merge<'a>> {
        if is_empty(range) {
            return Merge::new(Vec::new(), reverse);
        }
        let overlays = self.overlays.iter();
        let mut sources: Vec<Source<'a>> =
            overlays.map(|overlay| Box::new(overlay.range(range, reverse).map(Ok)) as Source<'a>).collect();
        sources.push(self.shared.tables.range(range, self.moment, reverse));
        Merge::new(sources, reverse)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.shared.tables.unpin(self.moment);
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Snapshot").field("position", &self.position).finish_non_exhaustive()
    }
}
