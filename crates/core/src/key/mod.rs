//! API keys.

pub mod read;
pub mod rows;
mod rule;
pub mod signer;
#[cfg(test)]
mod tests;

use crate::decide::Context;
use crate::operation::{About, Operation, operations};
use crate::permission::Permission;
use crate::reply::Done;
use crate::rows::{ApiKey, Signer};
use crate::view::{Stop, View};

pub use read::{Answer, Query};

/// Stores an API key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutApiKey {
    /// Its public part.
    pub id: String,
    /// The key, without its secret.
    pub key: ApiKey,
}

/// Ends an API key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RevokeApiKey {
    /// Its public part.
    pub id: String,
}

/// Adds a key that signs admissions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutSigner {
    /// The key.
    pub signer: Signer,
    /// The newest that there is, as far as whoever adds one knows; none is the first. Where another has come meanwhile, that one
    /// stays and nothing is changed: of servers that start together one makes the key.
    pub after: Option<String>,
    /// Whether it signs from now on and all others are forgotten: for a key that has leaked.
    pub at_once: bool,
}

operations!(Key: PutApiKey, RevokeApiKey, PutSigner; counts nothing);

impl Operation for PutApiKey {
    type Reply = Done;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
        rule::put(&self.id, &self.key, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::ManageKeys).changes_keys()
    }
}

impl Operation for RevokeApiKey {
    type Reply = Done;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
        rule::revoke(&self.id, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::ManageKeys).changes_keys()
    }
}

impl Operation for PutSigner {
    type Reply = Done;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
        signer::put(self, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::ManageKeys).changes_keys()
    }
}
