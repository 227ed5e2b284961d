//! API keys.

pub mod read;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

use crate::decide::Context;
use crate::operation::{About, Operation, operations};
use crate::permission::Permission;
use crate::reply::Done;
use crate::rows::ApiKey;
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

operations!(Key: PutApiKey, RevokeApiKey; counts nothing);

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
