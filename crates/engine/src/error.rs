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

/// Why one commit is refused by a store that would take half of it.
const TOO_LARGE: &str = "these changes are more than the store takes at once";

impl StoreError {
    /// More changes than the store takes at once; nothing was written. Fewer commands may fit.
    pub fn too_large() -> Self {
        Self::Broken(TOO_LARGE.into())
    }

    /// Whether this is [`StoreError::too_large`].
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Broken(why) if why == TOO_LARGE)
    }

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
