//! May this happen now?

mod def;
pub mod read;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::batch::{InBatch, Written, need};
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{KeyId, Name};
use crate::operation::{About, Operation, operations};
use crate::permission::Permission;
use crate::reply::{Answered, Done, NamesMut, Told};
use crate::rows::LimitKey;
use crate::view::{Stop, View};

pub use def::{Algorithm, LimitDef, Per, RateLimit};
pub use read::{Answer, Query};
pub use rule::{Room, key_of, limit_key, look_at, peek};
pub(crate) use rule::{pass, row};

/// Uses some of a limit, if there is enough left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Take {
    /// The limit.
    pub limit: Name,
    /// Whose limit is used.
    pub key: KeyId,
    /// How much.
    pub cost: u64,
}

/// Drops what is known of limits that nobody has used for as long as it matters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpireLimits {
    /// Which; those that are still needed are kept.
    pub limits: Vec<LimitKey>,
}

operations!(Limit: Take, ExpireLimits; counts nothing);

impl Operation for Take {
    type Reply = TakeReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<TakeReply, Stop> {
        rule::take(self, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::Take).key(&self.key).counted(self.limit.as_str(), self.key.as_str())
    }

    fn written(&self) -> Option<serde_json::Value> {
        Some(json!({"op": "take", "limit": self.limit, "key": self.key, "cost": self.cost}))
    }
}

impl InBatch for Take {
    const TAKES: &'static [&'static str] = &["limit", "key", "cost"];

    fn read(written: Written) -> Result<Self, Refusal> {
        Ok(Self { limit: need!(written.limit), key: need!(written.key), cost: written.cost.unwrap_or(1) })
    }
}

impl Operation for ExpireLimits {
    type Reply = Done;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
        rule::expire(&self.limits, context, view)
    }

    fn about(&self) -> About<'_> {
        About::system().weighing(self.limits.len())
    }
}

/// A limit after a use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TakeReply {
    /// The limit.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub limit: Name,
    /// Whose limit was used.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: KeyId,
    /// Whether it was allowed; a use that is not is refused.
    pub allowed: bool,
    /// How much is left.
    pub remaining: u64,
    /// In how many milliseconds all of it is there again.
    pub reset_ms: u64,
    /// How much there is in all.
    pub amount: u64,
    /// In how many milliseconds it is given.
    pub window_ms: u64,
}

impl Answered for TakeReply {
    fn correct(&mut self, _told: &mut Told<'_>) {}

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut { key: Some(&mut self.key), ..NamesMut::default() }
    }
}
