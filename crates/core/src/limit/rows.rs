//! The rows of limits.

use serde::{Deserialize, Serialize};

use super::ExpireLimits;
use crate::due::{Settling, WhenDue};
use crate::rows::{Due, Kind, Typed, columns, declare, documents, kind};
use crate::time::Timestamp;

/// Names what has been used of a limit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LimitKey {
    /// A declared limit, or the capability that has one, such as `relations.like`.
    pub name: String,
    /// Whose use it is: a digest of a subject, an object or an address.
    pub key: String,
}

/// What has been used of a limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Used {
    /// How much, in the way of its algorithm.
    pub state: UsedState,
    /// When to look whether the row may go. Not later than that, and not moved with every use.
    pub look_at: Timestamp,
}

/// The memory of each algorithm. Times are microseconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsedState {
    /// When each use was, and what it cost; oldest first.
    Log(Vec<(u64, u64)>),
    /// What was used in the window that began then, and in the one before it.
    Window {
        /// When the window began.
        start: u64,
        /// Used in it.
        current: u64,
        /// Used in the one before.
        previous: u64,
    },
    /// When the bucket will be full again, in nanoseconds since 1970.
    Bucket {
        /// The time.
        full_at: u64,
    },
}

documents!(UsedState);
columns!(LimitKey { name, key });
columns!(Used { state, look_at });

impl Kind for kind::Limit {
    declare!(Limit = b'm' "rate_limit" in "limit"
        ("name" Text, "key" Text) => ("state" Json, "look_at" Time)
        Absent With(1), due Due::At("look_at"));

    const DUE: Option<WhenDue<Self>> = Some(WhenDue {
        at: |used| Some(used.look_at),
        settling: Settling::cleaned(|keys| ExpireLimits { limits: Self::keys(keys) }.into()),
    });
}
