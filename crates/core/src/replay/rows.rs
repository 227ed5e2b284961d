//! Remembered answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Names a remembered answer: the key is the caller's own, so callers cannot meet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ReplayKey {
    /// Who sent it.
    pub caller: String,
    /// The Idempotency-Key.
    pub key: String,
}

/// A remembered answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Replay {
    /// A fingerprint for each field of the request.
    pub fields: Arc<Vec<(String, u64)>>,
    /// The answer, as JSON.
    pub answer: String,
    /// When it may be forgotten.
    pub expires_at: Timestamp,
}
