//! What is known about subjects beyond their edges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::Name;
use crate::rows::{Edge, JobId, Row};
use crate::time::{Stamp, Timestamp};

/// A subject that is suspended, or is being forgotten, or both. Without a row, a subject is simply itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Subject {
    /// While it is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// Until the job that forgets it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<Forgotten>,
}

/// Why a subject can make no edges.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Suspension {
    /// Since when.
    pub at: Timestamp,
    /// The job that hides its edges.
    pub job: JobId,
}

/// What a subject that is being forgotten has left behind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Forgotten {
    /// Edges made before this count as gone; what it makes from now on is stamped later.
    pub before: Stamp,
    /// How many of those are still there, in relations that limit how many a subject has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<Name, i64>,
}

impl Subject {
    /// Whether an edge is one that was forgotten, and is only waiting to be removed.
    pub fn has_forgotten(&self, edge: &Edge, now: Stamp) -> bool {
        self.forgotten.as_ref().is_some_and(|forgotten| edge.created.was_before(forgotten.before, now))
    }

    /// The stamp of what it makes now: later than what was forgotten, whatever another server's stamp was.
    pub fn stamp(&self, stamp: Stamp) -> Stamp {
        self.forgotten.as_ref().map_or(stamp, |forgotten| stamp.max(Stamp(forgotten.before.0 + 1)))
    }

    /// The row that says this, or none where there is nothing to say.
    pub fn into_row(self) -> Option<Row> {
        (self != Self::default()).then_some(Row::Subject(self))
    }
}
