//! How a store is opened.

use std::time::Duration;

use super::batch::BATCH_BYTES_MAX;

/// When an answered write is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// `wait` resolves when the batch is on disk. Batches that come in meanwhile share the next sync.
    Always,
    /// `wait` resolves at once, and the disk follows at this interval: a crash of the machine loses at most
    /// what was answered within it.
    Every(Duration),
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// When an answered write is on disk.
    pub sync: Sync,
    /// Rows of so many bytes of log are gathered in memory before they move into the tables. Up to about
    /// five times this is held, and the log can grow to the same.
    pub overlay_bytes_max: usize,
    /// The largest batch. A runner halves what is larger.
    pub batch_bytes_max: usize,
    /// Size of a log segment. Small stores use smaller ones.
    pub segment_bytes: u64,
    /// Memory for blocks of the tables.
    pub cache_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sync: Sync::Always,
            overlay_bytes_max: 32 << 20,
            batch_bytes_max: BATCH_BYTES_MAX,
            segment_bytes: 32 << 20,
            cache_bytes: 256 << 20,
        }
    }
}
