//! What can go wrong, and what a person can do about it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// An error of the store. Cheap to clone, because one failed sync answers many waiters.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Another process (or another handle in this one) has the folder open.
    #[error(
        "the store {} is open in another process: stop that process, or use another folder",
        folder.display()
    )]
    Locked {
        /// The store's folder.
        folder: PathBuf,
    },

    /// The folder holds something, but not a store.
    #[error(
        "{} is not empty and holds no Tally store: name an empty folder, or the folder of a store",
        folder.display()
    )]
    NotAStore {
        /// The folder that was given.
        folder: PathBuf,
    },

    /// The folder was written by a newer release.
    #[error(
        "the store {} has format {found}, and this release knows up to {known}: use a newer release of Tally",
        folder.display()
    )]
    NewerFormat {
        /// The store's folder.
        folder: PathBuf,
        /// The format found on disk.
        found: u32,
        /// The newest format that this release can read.
        known: u32,
    },

    /// The folder was written before the first release, when formats still changed.
    #[error("the store {} has format {found}, from before the first release, which cannot be read", folder.display())]
    OlderFormat {
        /// The store's folder.
        folder: PathBuf,
        /// The format found on disk.
        found: u32,
    },

    /// Files are missing, cut or altered, so that answered writes would be lost by going on.
    #[error(
        "the store is damaged at {}: {why}. Restore a backup with `tally restore BACKUP --to NEW`, or keep what can \
         still be read with `tally salvage {} --to NEW`",
        file.display(), folder_of(file).display()
    )]
    Damaged {
        /// The file that is damaged or missing.
        file: PathBuf,
        /// What was found.
        why: String,
    },

    /// Writes are refused for now. Reads go on, and the store tries again by itself.
    #[error("the store takes no writes now: {why}. Reads go on; writes resume by themselves once that is repaired")]
    Unavailable {
        /// Why, for instance a full disk.
        why: String,
    },

    /// The batch was not made durable and has been taken back.
    #[error("the write was not made durable and has been taken back: {why}. It is safe to send it again")]
    Discarded {
        /// Why, for instance a full disk.
        why: String,
    },

    /// The batch was not made durable, and the disk would not let it be taken back for good either.
    #[error(
        "the write was not made durable, and whether it is gone for good is not known: {why}. Send it again \
         once writes are taken; what is there already is not done twice with the same Idempotency-Key"
    )]
    Unsettled {
        /// Why, for instance a disk that refuses every sync.
        why: String,
    },

    /// The batch is larger than a log record may be.
    #[error("a batch of {bytes} bytes is over the limit of {max}: split it")]
    BatchTooLarge {
        /// Size of the batch.
        bytes: usize,
        /// The limit.
        max: usize,
    },

    /// Keys are not empty and do not start with a zero byte, which the store keeps for itself.
    #[error("a key is empty, starts with a zero byte or is longer than 65535 bytes")]
    BadKey,

    /// A backup would overwrite something.
    #[error("{} exists already: name a folder that does not exist yet, or an empty one", target.display())]
    TargetExists {
        /// Where the backup should have gone.
        target: PathBuf,
    },

    /// Two backups of one name, for instance.
    #[error("{} is being made by somebody else at the moment: wait for that, or use another name", target.display())]
    BeingMade {
        /// What is being made.
        target: PathBuf,
    },

    /// The store was closed.
    #[error("the store is closed")]
    Closed,

    /// The operating system refused something.
    #[error("could not {doing} {}: {source}", file.display())]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// On which file or folder.
        file: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },

    /// The tables could not be read or written.
    #[error("could not {doing} the tables: {why}")]
    Tables {
        /// What was attempted.
        doing: &'static str,
        /// What the tables' library said.
        why: String,
    },
}

/// Result of the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

impl StoreError {
    /// Whether the same call may succeed later without anybody changing the data.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Discarded { .. } | Self::Unsettled { .. } | Self::Io { .. })
    }

    pub(super) fn damaged(file: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::Damaged { file: file.into(), why: why.into() }
    }
}

/// The store that a file belongs to.
fn folder_of(file: &Path) -> &Path {
    let inside =
        |path: &&Path| path.file_name().is_some_and(|name| name == "log" || name == "rows" || name == "FORMAT");
    file.ancestors().find(inside).and_then(Path::parent).unwrap_or(file)
}

/// Says what was being done when the system refused.
pub(super) trait Doing<T> {
    fn doing(self, doing: &'static str, file: impl Into<PathBuf>) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, file: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| StoreError::Io { doing, file: file.into(), source: Arc::new(source) })
    }
}

/// The same for the library that keeps the tables.
pub(super) trait DoingTables<T> {
    fn doing_tables(self, doing: &'static str) -> Result<T>;
}

impl<T> DoingTables<T> for lsm_tree::Result<T> {
    fn doing_tables(self, doing: &'static str) -> Result<T> {
        self.map_err(|error| StoreError::Tables { doing, why: error.to_string() })
    }
}
