//! Which list of tables counts: the file `current` in the tables' folder.
//!
//! The library writes a new list, then renames a new `current` into place, then syncs the folder. If that last
//! sync fails, it goes on with the old list while the disk names the new one. Then `current` is put back here,
//! before anything that either list names is removed or written over.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::Xxh3;

use super::{
    error::{Doing, Result, StoreError},
    folder::{put_in_place, sync_folder},
    record::u64_at,
};

/// A draft of `current`.
pub(super) const CURRENT_PARTIAL: &str = "current.partial";

/// What `current` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) id: u64,
    pub(super) checksum: u128,
}

impl Named {
    fn encode(self) -> Vec<u8> {
        // The last byte is the kind of checksum.
        [&self.id.to_le_bytes()[..], &self.checksum.to_le_bytes(), &[0]].concat()
    }
}

pub(super) fn list_path(rows: &Path, id: u64) -> PathBuf {
    rows.join(format!("v{id}"))
}

/// What the disk names now.
pub(super) fn current(rows: &Path) -> Result<Named> {
    let path = rows.join("current");
    let bytes = fs::read(&path).doing("read", &path)?;
    let (Some(id), Some(low), Some(high)) = (u64_at(&bytes, 0), u64_at(&bytes, 8), u64_at(&bytes, 16)) else {
        return Err(StoreError::damaged(path, "it is cut short"));
    };
    Ok(Named { id, checksum: u128::from(low) | u128::from(high) << 64 })
}

/// Makes the disk name the list `id`, durably. `again` if that failed the last time.
pub(super) fn name(rows: &Path, id: u64, again: bool) -> Result<()> {
    let wanted = Named { id, checksum: checksum(&list_path(rows, id))? };
    // Mostly it is as it was before the work that failed, and on a full disk nothing could be written here. But
    // a name that was put into place and not synced is written once more: the failed sync may have made the system forget
    // that it was never written.
    if again || current(rows).ok() != Some(wanted) {
        write_current(rows, wanted)?;
    }
    sync_folder(rows)
}

/// Puts `current` into place; durable once the folder is synced.
pub(super) fn write_current(rows: &Path, named: Named) -> Result<()> {
    let (path, partial) = (rows.join("current"), rows.join(CURRENT_PARTIAL));
    put_in_place(&partial, &path, &named.encode())
}

/// What the bytes of a file hash to.
pub(super) fn checksum(path: &Path) -> Result<u128> {
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 1 << 20];
    let mut file = File::open(path).doing("read", path)?;
    loop {
        match file.read(&mut buffer).doing("read", path)? {
            0 => return Ok(hasher.digest128()),
            read => hasher.update(&buffer[..read]),
        }
    }
}
