//! How many times.

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
use crate::rows::{CountKey, TotalKey};
use crate::time::Timestamp;
use crate::view::{Stop, View};

pub use def::CounterDef;
pub use read::{Answer, Query};

/// Adds to a counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Add {
    /// The counter.
    pub counter: Name,
    /// What is counted.
    pub key: KeyId,
    /// How much; may be negative.
    pub by: i64,
}

operations!(Counter: Add; counts);

impl Operation for Add {
    type Reply = CounterReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<CounterReply, Stop> {
        rule::add(self, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::Count).key(&self.key).counted(self.counter.as_str(), self.key.as_str())
    }

    fn written(&self) -> Option<serde_json::Value> {
        Some(json!({"op": "count", "counter": self.counter, "key": self.key, "by": self.by}))
    }
}

impl InBatch for Add {
    const TAKES: &'static [&'static str] = &["counter", "key", "by"];

    fn read(written: Written) -> Result<Self, Refusal> {
        Ok(Self { counter: need!(written.counter), key: need!(written.key), by: written.by.unwrap_or(1) })
    }
}

/// A counter after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterReply {
    /// The counter.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub counter: Name,
    /// What is counted.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: KeyId,
    /// Its value now.
    pub value: i64,
    /// Whether this write altered anything.
    pub changed: bool,
    /// When it was last added to, to the second, where it keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_at: Option<Timestamp>,
}

impl Answered for CounterReply {
    fn correct(&mut self, told: &mut Told<'_>) {
        let key = CountKey { name: self.counter.clone(), key: self.key.clone() };
        self.value = self.value.saturating_add((told.off)(&TotalKey::Counter(key)));
    }

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut { key: Some(&mut self.key), ..NamesMut::default() }
    }
}
