//! API keys.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tally_core::command::RevokeApiKey;
use tally_core::query::{ApiKeysAnswer, ApiKeysQuery};
use tally_core::rows::Role;

use crate::request::requests;
use crate::{Call, Client};

/// A key that was made, with its secret: shown this once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeyMade {
    /// Its public part.
    pub id: String,
    /// The key itself.
    pub key: String,
    /// What it may do.
    pub role: Role,
    /// What people call it.
    pub name: String,
}

/// A key that is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRevoked {
    /// Whether it was in use until now.
    pub changed: bool,
}

impl Client {
    /// Makes a key.
    pub fn create_key(&self, role: Role, name: &str) -> Call<KeyMade> {
        self.post(&["v1", "keys"]).json(&json!({"role": role, "name": name}))
    }

    /// All keys, without their secrets.
    pub fn keys(&self) -> Call<ApiKeysAnswer> {
        self.get(&["v1", "keys"])
    }

    /// Ends a key.
    pub fn revoke_key(&self, id: &str) -> Call<KeyRevoked> {
        self.delete(&["v1", "keys", id])
    }
}

requests! {
    ApiKeysQuery => ApiKeysAnswer: |_ask, client| client.keys();
    RevokeApiKey => KeyRevoked: |ask, client| client.revoke_key(&ask.id);
}
