//! A folder that is made next to where it will be: there whole, or not at all.
//!
//! It is made inside `.NAME.partial`, which is locked as long as somebody works on it. So two that make the same
//! one do not meet, and what a killed process left behind can be told from what is being made.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    error::{Doing, Result, StoreError},
    folder::{Folder, parent},
};

const SUFFIX: &str = ".partial";

/// A folder in the making. Gone when dropped, unless it was finished.
#[derive(Debug)]
pub struct Partial {
    around: Folder,
    target: PathBuf,
}

impl Partial {
    /// Begins to make `target`, which is not there yet or is an empty folder.
    ///
    /// # Errors
    /// Something is there, somebody else is making it, or the disk refuses.
    pub fn begin(target: &Path) -> Result<Self> {
        refuse_existing(target)?;
        let name = target.file_name().ok_or_else(|| StoreError::TargetExists { target: target.to_path_buf() })?;
        remove_left(&parent(target));
        let mut around = std::ffi::OsString::from(".");
        around.push(name);
        around.push(SUFFIX);
        let around = Folder::lock(&target.with_file_name(around)).map_err(|error| match error {
            StoreError::Locked { .. } => StoreError::BeingMade { target: target.to_path_buf() },
            other => other,
        })?;
        let partial = Self { around, target: target.to_path_buf() };
        // Somebody may have finished it since, and what a killed process left may have come meanwhile.
        refuse_existing(target)?;
        let path = partial.path();
        if path.try_exists().doing("look for", &path)? {
            fs::remove_dir_all(&path).doing("remove", &path)?;
        }
        Ok(partial)
    }

    /// Where to make it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.around.path().join("store")
    }

    /// Puts it in place, durably. Everything in it must be synced before.
    ///
    /// # Errors
    /// Something has come there meanwhile, or the disk refuses. Nothing is at the target then.
    pub fn finish(self) -> Result<()> {
        let made = identity(&self.path());
        // An empty folder is replaced; anything that has come there meanwhile is not.
        fs::rename(self.path(), &self.target)
            .doing("put the finished folder at", &self.target)
            .and_then(|()| self.around.sync_name())
            .inspect_err(|_| {
                // A rename may be done though the system says that it failed.
                if made.is_some() && identity(&self.target) == made {
                    drop(fs::remove_dir_all(&self.target));
                }
            })
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(self.around.path()));
    }
}

/// Removes what killed processes left of folders that they were making in this one. What is being made stays.
pub fn remove_left(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_partial = name.to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(SUFFIX));
        // One without a lock was left before it got one, and is empty. Only such a one is removed here.
        if is_partial && fs::remove_dir(entry.path()).is_ok() {
            continue;
        }
        // Only what this module makes has a lock in it and nothing else but the folder.
        if is_partial
            && entry.path().join("LOCK").exists()
            && let Ok(held) = Folder::lock(&entry.path())
        {
            tracing::warn!(folder = %entry.path().display(), "removing what was left of an unfinished copy");
            drop(fs::remove_dir_all(entry.path()));
            drop(held);
        }
    }
}

/// Which folder it is, whatever its name.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
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
