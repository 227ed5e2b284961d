//! API keys, without their secrets.

use serde::{Deserialize, Serialize};

use crate::rows::{Kind, columns, declare, kind, texts};
use crate::time::Timestamp;

/// What a key may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads everything that is not for administrators.
    Read,
    /// Reads and writes for any subject.
    Service,
    /// Does everything, also what moderates and destroys.
    Admin,
}

impl Role {
    /// Its name, as people and stores write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Service => "service",
            Self::Admin => "admin",
        }
    }

    /// The role of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Read, Self::Service, Self::Admin].into_iter().find(|role| role.name() == name)
    }
}

/// An API key; the secret itself is never stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApiKey {
    /// SHA-256 of the secret, in hex.
    pub hash: String,
    /// What it may do.
    pub role: Role,
    /// What people call it.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stopped working.
    pub revoked_at: Option<Timestamp>,
}

texts!(Role: Self::name, Self::from_name);
columns!(ApiKey { hash, role, name, created_at, revoked_at });

impl Kind for kind::ApiKey {
    declare!(ApiKey = b'a' "api_key" in "key"
        ("id" Text) => ("hash" Text, "role" Text, "name" Text, "created_at" Time, "revoked_at" Time)
        Changed Store);
}
