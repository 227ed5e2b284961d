//! Temporary folders that are gone afterwards, together with whatever runs in them.

use anyhow::{Context, Result};
use rustix::process::Signal;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Less than this would soon be full.
const MEMORY_BYTES_MIN: u64 = 2 << 30;

/// A temporary folder, removed with the value.
///
/// A small shell script waits until this process lets go of a pipe, then ends every process whose current
/// directory is inside the folder, and removes it. A pipe closes however a process ends, so this also holds
/// for `std::process::exit`, which drops no statics, and for a test that is killed.
pub struct Folder {
    path: PathBuf,
    watcher: Child,
}

impl Folder {
    /// A folder on a real disk. `/tmp` may be memory, where a sync costs nothing, so it is not used.
    pub fn new(name: &str) -> Result<Self> {
        let base = Path::new("/var/tmp");
        Self::inside(if base.is_dir() { base.to_path_buf() } else { std::env::temp_dir() }, name)
    }

    /// A folder in memory, for what need not survive a power cut, if there is enough of it; on a disk otherwise.
    pub fn in_memory(name: &str) -> Result<Self> {
        let base = Path::new("/dev/shm");
        let free_bytes = rustix::fs::statvfs(base).map_or(0, |about| about.f_bavail * about.f_frsize);
        if free_bytes < MEMORY_BYTES_MIN { Self::new(name) } else { Self::inside(base.into(), name) }
    }

    fn inside(base: PathBuf, name: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix(&format!("tally-{name}-")).tempdir_in(base)?;
        let watcher = Command::new("sh")
            .args(["-c", include_str!("watcher.sh"), "watcher"])
            .arg(folder.path())
            .current_dir("/")
            .stdin(Stdio::piped())
            // Nobody may wait for the end of a test's output because of it.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What ends a test's process group must leave it alone.
            .process_group(0)
            .spawn()
            .context("could not start sh")?;
        Ok(Self { path: folder.keep(), watcher })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What ends the processes in here if this process cannot end them itself. Otherwise they are killed.
    pub(crate) fn end_with(&self, signal: Signal) -> Result<()> {
        let mut pipe = self.watcher.stdin.as_ref().context("the folder is gone")?;
        Ok(writeln!(pipe, "{}", signal.as_raw())?)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closes the pipe first. Best effort: there is nobody left to tell.
        let _ = self.watcher.wait();
    }
}

/// Bytes on disk under a folder, as blocks taken, so that preallocated holes do not count.
pub fn disk_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => disk_bytes(&entry.path()),
            Ok(data) => data.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}
