//! What can still be read of a damaged store, written as a new one. The damaged one is only read.

mod batches;
mod lists;
mod rows;

use std::{fs::File, path::Path};

use rustix::fs::{FlockOperation, flock};

use crate::store::{
    Position, backup,
    error::{Doing, Result, StoreError},
    options::Options,
    overlay::Overlay,
    partial::Partial,
};

/// What was saved, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// The last batch of which anything was saved.
    pub position: Position,
    /// How many rows were saved.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// What could not be read, one sentence each. Empty: nothing was lost.
    pub lost: Vec<String>,
}

/// Writes what can be read of the store in `from` as a new store to `to`. What a lost row was overwritten or
/// deleted by may be lost too, so that an older row shows; and totals may not fit their rows any more.
///
/// # Errors
/// The damaged store is open in another process, `to` is not empty, or a disk refuses. Nothing is at `to` then.
pub fn salvage(from: &Path, to: &Path, progress: impl FnMut(u64, u64)) -> Result<SalvageReport> {
    let _held = hold(from)?;
    let partial = Partial::begin(to)?;
    let mut lost = Vec::new();
    let tables = rows::open(&from.join("rows"), &mut lost);
    let ingested = tables.ingested();
    let mut log = Overlay::default();
    let position = batches::read(&from.join("log"), ingested, &mut log, &mut lost);
    let found = rows::merge(&log, &tables, &mut lost)?;
    let written = backup::write(&partial.path(), found, position, Options::default().segment_bytes, progress)?;
    // A table is only read to its end while it is written on.
    lost.extend(tables.lost());
    partial.finish()?;
    Ok(SalvageReport { position, rows: written.rows, bytes: written.bytes, lost })
}

/// Keeps a server from opening it meanwhile, without writing anything.
fn hold(from: &Path) -> Result<Option<File>> {
    let path = from.join("LOCK");
    let lock = match File::open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).doing("open", path),
    };
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::Locked { folder: from.to_path_buf() }),
        Err(error) => Err(error.into()).doing("lock", path),
    }
}
