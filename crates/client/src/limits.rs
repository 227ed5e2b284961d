//! Limits: may this happen now?

use serde_json::json;
use tally_core::command::Take;
use tally_core::query::{LimitAnswer, LimitQuery};
use tally_core::reply::TakeReply;
use tally_core::{KeyId, Name};

use crate::{Call, Client, Request};

impl Client {
    /// Uses so much of a limit. Used up is a problem, `rate_limited`.
    pub fn take(&self, limit: &Name, key: &KeyId, cost: u64) -> Call<TakeReply> {
        self.post(&["v1", "limits", limit.as_str(), key.as_str()]).json(&json!({"cost": cost}))
    }

    /// How a limit stands.
    pub fn limit(&self, limit: &Name, key: &KeyId) -> Call<LimitAnswer> {
        self.get(&["v1", "limits", limit.as_str(), key.as_str()])
    }
}

impl Request for Take {
    type Answer = TakeReply;

    fn call(&self, client: &Client) -> Call<TakeReply> {
        client.take(&self.limit, &self.key, self.cost)
    }
}

impl Request for LimitQuery {
    type Answer = LimitAnswer;

    fn call(&self, client: &Client) -> Call<LimitAnswer> {
        client.limit(&self.limit, &self.key)
    }
}
