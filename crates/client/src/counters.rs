//! Counters: how many times?

use serde_json::json;
use tally_core::command::Add;
use tally_core::query::{CounterAnswer, CounterQuery};
use tally_core::reply::CounterReply;
use tally_core::{KeyId, Name};

use crate::request::requests;
use crate::{Call, Client};

impl Client {
    /// Adds to a counter; less than nothing takes away.
    pub fn add(&self, counter: &Name, key: &KeyId, by: i64) -> Call<CounterReply> {
        self.post(&["v1", "counters", counter.as_str(), key.as_str()]).json(&json!({"by": by}))
    }

    /// A counter's value.
    pub fn counter(&self, counter: &Name, key: &KeyId) -> Call<CounterAnswer> {
        self.get(&["v1", "counters", counter.as_str(), key.as_str()])
    }
}

requests! {
    Add => CounterReply: |ask, client| client.add(&ask.counter, &ask.key, ask.by);
    CounterQuery => CounterAnswer: |ask, client| client.counter(&ask.counter, &ask.key);
}
