//! Looking at a store's folder from outside, without opening the store.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tally::Opening;

use super::failure::Failure;

/// The folder of `embedded:PATH`.
pub(super) fn of_store(url: &str) -> Result<PathBuf, Failure> {
    match Opening::parse(url) {
        Ok(Opening::Embedded(path)) => Ok(path),
        Ok(_) => Err(Failure::usage(format!("`{}` has no folder; use embedded:PATH", tally::redacted(url)))),
        Err(error) => Err(Failure::usage(error.to_string())),
    }
}

/// Refuses a folder without a store: a command with a mistyped path must not make a new one.
pub(super) fn require_store(folder: &Path) -> Result<(), Failure> {
    if folder.join("FORMAT").is_file() {
        return Ok(());
    }
    let shown = folder.display();
    Err(Failure::new(format!(
        "there is no store in {shown}: check the path, or make one with: tally serve --store embedded:{shown}"
    )))
}

/// The format that the folder says it has.
pub(super) fn format(folder: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(folder.join("FORMAT")).ok()?;
    text.trim_end().strip_prefix("tally store format ")?.parse().ok()
}

/// Keeps a store from being opened for as long as it is held.
pub(super) struct Held {
    _lock: Option<File>,
}

/// Holds a folder, or says that another process has its store open. A folder that cannot be locked,
/// such as one on a read-only disk, cannot be opened by a server either.
pub(super) fn hold(folder: &Path) -> Result<Held, Failure> {
    let Ok(lock) = File::open(folder.join("LOCK")) else { return Ok(Held { _lock: None }) };
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(in_use(folder)),
        _ => Ok(Held { _lock: Some(lock) }),
    }
}

/// Whether another process has the store open.
pub(super) fn is_in_use(folder: &Path) -> bool {
    hold(folder).is_err()
}

/// What to say then.
pub(super) fn in_use(folder: &Path) -> Failure {
    Failure::new(format!(
        "the store {} is open in another process: leave --store out to ask its server, or stop that process",
        folder.display()
    ))
}

/// Every file below a folder with its size.
pub(super) fn files(folder: &Path) -> std::io::Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        if meta.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.push((entry.path(), meta.len()));
        }
    }
    Ok(found)
}
