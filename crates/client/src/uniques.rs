//! Unique counts: how many different ones?

use serde_json::json;
use tally_core::command::Observe;
use tally_core::query::{UniqueAnswer, UniqueQuery};
use tally_core::reply::UniqueReply;
use tally_core::{KeyId, Name};

use crate::{Call, Client, Request};

impl Client {
    /// Notes who was seen.
    pub fn observe(&self, unique: &Name, key: &KeyId, members: &[String]) -> Call<UniqueReply> {
        self.post(&["v1", "uniques", unique.as_str(), key.as_str()]).json(&json!({"members": members}))
    }

    /// About how many different ones were seen under any of these keys.
    pub fn unique(&self, unique: &Name, keys: &[KeyId]) -> Call<UniqueAnswer> {
        // One parameter each, so that a key may hold a comma.
        let keys: Vec<_> = keys.iter().map(|key| ("keys", Some(key.to_string()))).collect();
        self.get_with(&["v1", "uniques", unique.as_str()], &keys)
    }
}

impl Request for Observe {
    type Answer = UniqueReply;

    fn call(&self, client: &Client) -> Call<UniqueReply> {
        client.observe(&self.unique, &self.key, &self.members)
    }
}

impl Request for UniqueQuery {
    type Answer = UniqueAnswer;

    fn call(&self, client: &Client) -> Call<UniqueAnswer> {
        client.unique(&self.unique, &self.keys)
    }
}
