//! What a store can answer instead of rows.

use tally_core::rows::NotTaken;

/// The store could not do it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// Not now; the same may work later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Not until somebody looks at it.
    #[error("the store needs attention: {0}")]
    Broken(String),
    /// More at once than can be done; nothing was written.
    #[error("{0}")]
    TooLarge(TooLarge),
}

/// What there is too much of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TooLarge {
    /// Bytes in one commit.
    #[error("these changes are more than the store takes at once")]
    Changes,
    /// Loads before everything that decisions wait for is there.
    #[error("a decision keeps asking for more rows")]
    Rounds,
}

impl StoreError {
    /// Whether fewer commands at once may help: nothing was written.
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge(_))
    }

    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl From<NotTaken> for StoreError {
    fn from(error: NotTaken) -> Self {
        Self::Broken(error.to_string())
    }
}

/// Why a commit was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CommitError {
    /// Something that was decided on has moved: load and decide again.
    #[error("a row that was decided on has changed")]
    Conflict,
    /// The store could not do it; nothing was written, unless it says otherwise when read.
    #[error(transparent)]
    Store(#[from] StoreError),
}
