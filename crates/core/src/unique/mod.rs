//! How many different ones.

mod def;
mod forget;
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
use crate::reply::{Answered, NamesMut, Told};
use crate::view::{Stop, View};

pub use def::UniqueDef;
pub use read::{Answer, Query};

/// Notes who was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observe {
    /// The unique count.
    pub unique: Name,
    /// What is counted.
    pub key: KeyId,
    /// Who was seen.
    pub members: Vec<String>,
}

operations!(Unique: Observe; counts);

impl Operation for Observe {
    type Reply = UniqueReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<UniqueReply, Stop> {
        rule::observe(self, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::Observe).key(&self.key).counted(self.unique.as_str(), self.key.as_str())
    }

    fn written(&self) -> Option<serde_json::Value> {
        Some(json!({"op": "observe", "unique": self.unique, "key": self.key, "members": self.members}))
    }
}

impl InBatch for Observe {
    const TAKES: &'static [&'static str] = &["unique", "key", "members"];

    fn read(written: Written) -> Result<Self, Refusal> {
        Ok(Self { unique: need!(written.unique), key: need!(written.key), members: need!(written.members).0 })
    }
}

/// A unique count after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UniqueReply {
    /// The unique count.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub unique: Name,
    /// What is counted.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: KeyId,
    /// Whether any of the members moved the count; most of those that were there before do not.
    pub changed: bool,
    /// About how many different ones there are.
    pub estimate: u64,
}

impl Answered for UniqueReply {
    fn correct(&mut self, _told: &mut Told<'_>) {}

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut { key: Some(&mut self.key), ..NamesMut::default() }
    }
}
