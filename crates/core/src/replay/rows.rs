//! Remembered answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ExpireReplays;
use crate::due::{Settling, WhenDue};
use crate::rows::{Due, Kind, Typed, columns, declare, documents, kind};
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

documents!(Arc<Vec<(String, u64)>>);
columns!(ReplayKey { caller, key });
columns!(Replay { fields, answer, expires_at });

impl Kind for kind::Replay {
    declare!(Replay = b'r' "replay" in "replay"
        ("caller" Text, "key" Text) => ("fields" Json, "answer" Text, "expires_at" Time)
        Key Spread, due Due::At("expires_at"));

    const DUE: Option<WhenDue<Self>> = Some(WhenDue {
        at: |replay| Some(replay.expires_at),
        settling: Settling::cleaned(|keys| ExpireReplays { replays: Self::keys(keys) }.into()),
    });
}
