//! Reads everything, and verifies every checksum on the way.

use std::{path::Path, sync::Arc};

use super::{
    Snapshot,
    error::{Result, StoreError},
    replay::{Replayed, replay},
    shared::Shared,
    versions,
};

/// What a check has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Rows of all tables and of memory.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Batches in the log.
    pub log_batches: u64,
    /// Their bytes.
    pub log_bytes: u64,
}

pub(super) fn check(shared: &Arc<Shared>, mut progress: impl FnMut(u64, u64)) -> Result<CheckReport> {
    let snapshot = Snapshot::take(shared.clone());
    let mut report = CheckReport::default();
    for table in shared.tables.checksums() {
        verify(&table.path, table.expected)?;
    }
    for row in snapshot.iter()? {
        let (key, value) = row?;
        report.rows += 1;
        report.bytes += (key.len() + value.len()) as u64;
        if report.rows % 10_000 == 0 {
            progress(report.rows, report.bytes);
        }
    }
    let found = check_log(shared)?;
    report.log_batches = found.batches;
    report.log_bytes = found.bytes;
    progress(report.rows, report.bytes);
    Ok(report)
}

/// Reads the log. What is moved into the tables meanwhile may take a segment away before it is read;
/// then the log begins later now, and is read again from there.
fn check_log(shared: &Shared) -> Result<Replayed> {
    let mut attempts = 0..10;
    loop {
        let ingested = shared.tables.ingested()?;
        match replay(shared.log.path(), ingested, u64::MAX, |_, _| {}) {
            Ok((found, None)) => return Ok(found),
            _ if shared.tables.ingested()? > ingested && attempts.next().is_some() => {}
            Err(StoreError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound && attempts.next().is_some() => {}
            Ok((_, Some(damage))) => return Err(damage),
            Err(error) => return Err(error),
        }
    }
}

/// The library names the list of tables together with its checksum, but does not compare it.
pub(super) fn verify_manifest(rows: &Path) -> Result<()> {
    let named = versions::current(rows)?;
    let list = versions::list_path(rows, named.id);
    if !list.exists() {
        return Err(StoreError::damaged(list, "it is missing"));
    }
    verify(&list, named.checksum)
}

pub(super) fn verify(path: &Path, expected: u128) -> Result<()> {
    if versions::checksum(path)? == expected {
        Ok(())
    } else {
        Err(StoreError::damaged(path, "its bytes are not those that were written"))
    }
}
