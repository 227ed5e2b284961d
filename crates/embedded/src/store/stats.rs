//! How the store is doing.

use std::sync::atomic::Ordering;

use super::{
    Position,
    shared::{Shared, State},
};

/// How the store is doing; see [`super::Store::stats`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Whether writes are taken.
    pub state: State,
    /// The last applied batch.
    pub position: Position,
    /// The last batch that survives a crash.
    pub durable: Position,
    /// Rows in memory that are not in the tables yet.
    pub overlay_rows: usize,
    /// The log bytes of those rows.
    pub overlay_bytes: usize,
    /// Overlays that wait to be moved into the tables.
    pub overlays_frozen: usize,
    /// Why rows cannot be moved into the tables at the moment.
    pub tables_failing: Option<String>,
    /// Bulks that are not merged yet.
    pub tables_unmerged: usize,
    /// Log segments on disk, spares included.
    pub log_segments: u64,
    /// Their bytes.
    pub log_bytes: u64,
    /// Bytes of the tables on disk.
    pub tables_bytes: u64,
    /// How long the last write and sync of the log took.
    pub sync_micros: u64,
}

impl Stats {
    /// Bytes of the store on disk.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.log_bytes + self.tables_bytes
    }
}

pub(super) fn stats(shared: &Shared) -> Stats {
    let (state, position) = {
        let writer = shared.writer();
        (writer.state.clone(), writer.last)
    };
    let (overlay_rows, overlay_bytes, overlays_frozen) = {
        let overlays = shared.overlays();
        (overlays.rows(), overlays.active.bytes() + overlays.frozen_bytes(), overlays.frozen.len())
    };
    let (log_segments, log_bytes) = shared.log.usage();
    Stats {
        state,
        position,
        durable: shared.durable(),
        overlay_rows,
        overlay_bytes,
        overlays_frozen,
        tables_failing: shared.mover().failing.clone(),
        tables_unmerged: shared.tables.unmerged(),
        log_segments,
        log_bytes,
        tables_bytes: shared.tables.bytes(),
        sync_micros: shared.sync_micros.load(Ordering::Relaxed),
    }
}
