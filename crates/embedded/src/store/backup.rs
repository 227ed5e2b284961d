//! A copy of the store as of one moment, written while the store is in use.

use std::{path::Path, sync::Arc};

use super::{
    Position, Snapshot,
    error::Result,
    folder::{Folder, make_folder, sync_folder},
    log::{LogFolder, LogWriter},
    merge::Row,
    partial::Partial,
    shared::Shared,
    tables::Tables,
};

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupReport {
    /// The last batch in it.
    pub position: Position,
    /// How many rows.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Bytes of the copy's tables on disk.
    pub disk_bytes: u64,
}

pub(super) fn backup(shared: &Arc<Shared>, target: &Path, progress: impl FnMut(u64, u64)) -> Result<BackupReport> {
    let partial = Partial::begin(target)?;
    let snapshot = Snapshot::take(shared.clone());
    durable(shared, snapshot.position())?;
    let position = snapshot.position();
    let report = write(&partial.path(), snapshot.iter()?, position, shared.options.segment_bytes, progress)?;
    partial.finish()?;
    Ok(report)
}

/// Writes rows, sorted by their keys, as a store of its own.
pub(super) fn write(
    path: &Path,
    rows: impl Iterator<Item = Result<Row>>,
    position: Position,
    segment_bytes: u64,
    mut progress: impl FnMut(u64, u64),
) -> Result<BackupReport> {
    let folder = Folder::lock(path)?;
    make_folder(&folder.rows())?;
    let tables = Tables::open(&folder.rows(), 1 << 20)?;
    let (mut count, mut bytes) = (0, 0);
    let changes = rows.map(|row| {
        let (key, value) = row?;
        count += 1;
        bytes += (key.len() + value.len()) as u64;
        if count % 10_000 == 0 {
            progress(count, bytes);
        }
        Ok((key, Some(value)))
    });
    tables.ingest(changes, position)?;
    progress(count, bytes);
    make_folder(&folder.log())?;
    let log = LogFolder::new(folder.log(), segment_bytes);
    LogWriter::open(&log, 1, position + 1, position)?;
    sync_folder(&folder.log())?;
    folder.write_format()?;
    Ok(BackupReport { position, rows: count, bytes, disk_bytes: tables.bytes() })
}

/// A backup must not hold what the store may still take back.
fn durable(shared: &Shared, position: Position) -> Result<()> {
    let outcome = || {
        // Asked for first: what becomes durable after this was refused may have a larger position.
        let written = shared.durable() >= position;
        shared.outcome(position).filter(Result::is_err).or(written.then_some(Ok(())))
    };
    super::wait::block_on(shared.waiters.wait(position, outcome))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Batch, StoreError, by_hand::ByHand},
        *,
    };

    #[test]
    fn what_was_refused_is_never_taken_for_durable_though_later_batches_are() {
        let folder = tempfile::tempdir().unwrap();
        let (store, mut log) = ByHand::open(folder.path());
        let mut batch = Batch::new();
        batch.put(b"row", b"value");
        let refused = store.apply(&batch).unwrap();
        log.fail(&store);
        log.recover(&store);
        let later = store.apply(&batch).unwrap();
        log.sync(&store);
        assert!(store.durable() > refused);
        let outcome = durable(&store.shared, refused);
        assert!(matches!(outcome, Err(StoreError::Discarded { .. })), "{outcome:?}");
        durable(&store.shared, later).unwrap();
    }
}
