//! What can go wrong between a caller and the store.

use tally_core::{Refusal, Reply};
use tally_engine::{Failure, StoreError};

use crate::CopyError;

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The rules said no. Nothing was written.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Too much is waiting. Nothing was written; try again shortly.
    #[error("too many requests are waiting; try again shortly")]
    Overloaded,
    /// The store cannot do it now.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Tally is closing.
    #[error("the server is stopping")]
    Stopping,
    /// The store's URL is wrong, or it cannot be opened.
    #[error("{0}")]
    Open(String),
    /// A store is half-made, or a copy could not be made whole.
    #[error(transparent)]
    Copy(#[from] CopyError),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Overloaded => Self::Overloaded,
            Failure::Store(error) => Self::Store(error),
            Failure::Stopping => Self::Stopping,
        }
    }
}

/// An answer as what it is to what was asked.
pub(crate) fn typed<R: TryFrom<Reply>>(reply: Reply) -> Result<R, StoreError> {
    reply.try_into().map_err(|_| StoreError::Broken("a command was answered as another".into()))
}
