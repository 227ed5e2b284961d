//! The store's folder: who has it open, and which format it is in.
//!
//! ```text
//! LOCK     held while a process has the store open
//! FORMAT   one line, written last when a store is created
//! log/     segments: what is committed
//! rows/    tables: what has been moved out of the log
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use super::error::{Doing, Result, StoreError};

/// The format that this release writes.
pub const FORMAT: u32 = 4;

const FORMAT_FILE: &str = "FORMAT";
const LOCK_FILE: &str = "LOCK";

/// A locked folder. The lock goes with the value, and with the process however it ends.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
    /// The folders in which a name came when this one was made: none where it was there.
    changed: Vec<PathBuf>,
    made_lock: bool,
}

impl Folder {
    /// Creates the folder when it is missing, and locks it.
    pub(super) fn lock(path: &Path) -> Result<Self> {
        let mut changed = Vec::new();
        let lock_path = path.join(LOCK_FILE);
        loop {
            changed.extend(make_folder(path)?);
            let mut opening = OpenOptions::new();
            opening.write(true).mode(0o600);
            let (lock, made_lock) = match opening.create_new(true).open(&lock_path) {
                Ok(lock) => (lock, true),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    match opening.create_new(false).open(&lock_path) {
                        Ok(lock) => (lock, false),
                        Err(error) if error.kind() == ErrorKind::NotFound => continue,
                        Err(error) => return Err(error).doing("open", lock_path),
                    }
                }
                // Whoever had the folder has just removed it.
                Err(error) if error.kind() == ErrorKind::NotFound && !path.exists() => continue,
                Err(error) => return Err(error).doing("open", lock_path),
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if !is_at(&lock, &lock_path) => {}
                Ok(()) => {
                    return Ok(Self { path: path.to_path_buf(), _lock: lock, changed, made_lock });
                }
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(StoreError::Locked { folder: path.to_path_buf() }),
                Err(error) => return Err(error.into()).doing("lock", lock_path),
            }
        }
    }

    /// Leaves a folder that will not be a store as it was found.
    pub(super) fn leave(&self) {
        if self.made_lock {
            drop(fs::remove_file(self.path.join(LOCK_FILE)));
        }
        if !self.changed.is_empty() {
            // Refused unless it is empty.
            drop(fs::remove_dir(&self.path));
        }
    }

    /// Makes its own name durable, and the names of those above it that were made with it.
    pub(super) fn sync_name(&self) -> Result<()> {
        for folder in &self.changed {
            sync_folder(folder)?;
        }
        // Whoever made one that was there may have been killed before this.
        let above = self.path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_path_buf));
        above.filter(|_| self.changed.is_empty()).map_or(Ok(()), |above| sync_folder(&above))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    pub(super) fn rows(&self) -> PathBuf {
        self.path.join("rows")
    }

    /// The format on disk; `None` where no store has been created yet.
    pub(super) fn format(&self) -> Result<Option<u32>> {
        let file = self.path.join(FORMAT_FILE);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return self.refuse_strangers().map(|()| None);
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(StoreError::damaged(file, "it is not text"));
            }
            Err(error) => return Err(error).doing("read", file),
        };
        let found = text
            .strip_prefix("tally store format ")
            .and_then(|rest| rest.strip_suffix('\n'))
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| StoreError::damaged(&file, "it names no format"))?;
        if found > FORMAT {
            return Err(StoreError::NewerFormat { folder: self.path.clone(), found, known: FORMAT });
        }
        if found < FORMAT {
            return Err(StoreError::OlderFormat { folder: self.path.clone(), found });
        }
        Ok(Some(found))
    }

    /// Marks the store as created. Everything else must be on disk before.
    pub(super) fn write_format(&self) -> Result<()> {
        let (file, partial) = (self.path.join(FORMAT_FILE), self.path.join("FORMAT.partial"));
        put_in_place(&partial, &file, format!("tally store format {FORMAT}\n").as_bytes())?;
        sync_folder(&self.path)
    }

    /// A folder without FORMAT may hold only what an interrupted creation leaves behind.
    fn refuse_strangers(&self) -> Result<()> {
        for entry in fs::read_dir(&self.path).doing("list", &self.path)? {
            let name = entry.doing("list", &self.path)?.file_name();
            if !["LOCK", "FORMAT.partial", "log", "rows", "lost+found"].iter().any(|own| name == *own) {
                return Err(StoreError::NotAStore { folder: self.path.clone() });
            }
        }
        Ok(())
    }
}

/// Whether a file is still what its name stands for: a lock on one that was removed meanwhile locks nothing.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
    file.metadata().map(id).ok() == fs::metadata(path).map(id).ok()
}

/// Makes a folder, and those above it that are missing, for this user alone. Gives the folders in which a name came,
/// outermost first: only when those are synced, it is there to stay.
pub(super) fn make_folder(path: &Path) -> Result<Vec<PathBuf>> {
    let mut changed = Vec::new();
    let mut at = path.to_path_buf();
    while !at.try_exists().doing("look for", &at)? {
        at = parent(&at);
        changed.insert(0, at.clone());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).doing("create the folder", path)?;
    Ok(changed)
}

/// The folder that a path is in.
pub(super) fn parent(path: &Path) -> PathBuf {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or_else(|| ".".into(), Path::to_path_buf)
}

/// Puts a whole file into place by way of another name; durable once its folder is synced.
pub(super) fn put_in_place(partial: &Path, file: &Path, bytes: &[u8]) -> Result<()> {
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(partial)
        .and_then(|mut out| {
            out.write_all(bytes)?;
            out.sync_all()
        })
        .doing("write", partial)?;
    fs::rename(partial, file).doing("write", file)
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<()> {
    File::open(path).and_then(|folder| folder.sync_all()).doing("sync the folder", path)
}
