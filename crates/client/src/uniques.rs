//! Unique counts: how many different ones?

use serde_json::json;
use tally_core::command::Observe;
use tally_core::query::{UniqueAnswer, UniqueQuery};
use tally_core::reply::UniqueReply;
use tally_core::{KeyId, Name};

use crate::request::requests;
use crate::{Call, Client};

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

requests! {
    Observe => UniqueReply: |ask, client| client.observe(&ask.unique, &ask.key, &ask.members);
    UniqueQuery => UniqueAnswer: |ask, client| client.unique(&ask.unique, &ask.keys);
}
