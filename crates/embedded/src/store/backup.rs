//! A copy of the store as of one moment, written while the store is in use.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Position, Snapshot,
    error::{Doing, Result, StoreError},
    folder::{Folder, sync_folder},
    log::{LogFolder, LogWriter},
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
    refuse_existing(target)?;
    let snapshot = Snapshot::take(shared.clone());
    durable(shared, snapshot.position())?;
    let partial = partial_path(target)?;
    let written = write(shared, &snapshot, &partial, progress).and_then(|report| {
        // An empty folder is replaced; anything that has come there meanwhile is not.
        fs::rename(&partial, target).doing("put the backup at", target)?;
        sync_folder(target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
        Ok(report)
    });
    written.inspect_err(|_| drop(fs::remove_dir_all(&partial)))
}

fn write(
    shared: &Shared,
    snapshot: &Snapshot,
    partial: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<BackupReport> {
    let folder = Folder::lock(partial)?;
    let tables = Tables::open(&folder.rows(), 1 << 20)?;
    let (mut rows, mut bytes) = (0, 0);
    let changes = snapshot.iter()?.map(|row| {
        let (key, value) = row?;
        rows += 1;
        bytes += (key.len() + value.len()) as u64;
        if rows % 10_000 == 0 {
            progress(rows, bytes);
        }
        Ok((key, Some(value)))
    });
    tables.ingest(changes, snapshot.position())?;
    progress(rows, bytes);
    fs::create_dir_all(folder.log()).doing("create the folder", folder.log())?;
    let log = LogFolder::new(folder.log(), shared.options.segment_bytes);
    LogWriter::open(&log, 1, snapshot.position() + 1, snapshot.position())?;
    sync_folder(&folder.log())?;
    folder.write_format()?;
    Ok(BackupReport { position: snapshot.position(), rows, bytes, disk_bytes: tables.bytes() })
}

/// A backup must not hold what the store may still take back.
fn durable(shared: &Shared, position: Position) -> Result<()> {
    let written = || (shared.durable() >= position).then_some(Ok(()));
    let outcome = || written().or_else(|| shared.outcome(position).filter(|outcome| outcome.is_err()));
    super::wait::block_on(shared.waiters.wait(position, outcome))
}

fn refuse_existing(target: &Path) -> Result<()> {
    let taken = match fs::read_dir(target) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    if taken {
        return Err(StoreError::TargetExists { target: target.to_path_buf() });
    }
    Ok(())
}

/// A new name next to the target, so that the last step is a rename.
fn partial_path(target: &Path) -> Result<PathBuf> {
    let mut name = target.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".partial-{}", std::process::id()));
    let partial = target.with_file_name(name);
    if partial.exists() {
        fs::remove_dir_all(&partial).doing("remove", &partial)?;
    }
    Ok(partial)
}
