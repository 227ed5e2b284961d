//! What a store can answer instead of rows.

/// The store could not do it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// Not now; the same may work later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Not until somebody looks at it.
    #[error("the store needs attention: {0}")]
    Broken(String),
}

impl StoreError {
    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
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
