//! Limits: may this happen now?

use serde_json::json;
use tally_core::command::Take;
use tally_core::query::{LimitAnswer, LimitQuery};
use tally_core::reply::TakeReply;
use tally_core::{KeyId, Name};

use crate::request::requests;
use crate::{Call, Client};

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

requests! {
    Take => TakeReply: |ask, client| client.take(&ask.limit, &ask.key, ask.cost);
    LimitQuery => LimitAnswer: |ask, client| client.limit(&ask.limit, &ask.key);
}
