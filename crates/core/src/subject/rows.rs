//! What is known about subjects beyond their edges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::Name;
use crate::rows::{Cell, Cells, Columns, Edge, JobId, Kind, Row, Value, declare, documents, kind};
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

documents!(BTreeMap<Name, i64>);

impl Columns for Subject {
    fn put<'a>(&'a self, put: &mut impl FnMut(Cell<'a>)) {
        let (suspended, forgotten) = (self.suspended.as_ref(), self.forgotten.as_ref());
        put(suspended.map_or(Cell::Null, |row| row.at.cell()));
        put(suspended.map_or(Cell::Null, |row| row.job.cell()));
        put(forgotten.map_or(Cell::Null, |row| row.before.cell()));
        put(forgotten.map_or(Cell::Null, |row| row.left.cell()));
    }

    fn take(from: &mut Cells<'_>) -> Option<Self> {
        let ((at, job), (before, left)) = Columns::take(from)?;
        let suspended = Option::zip(at, job).map(|(at, job)| Suspension { at, job });
        let forgotten = Option::zip(before, left).map(|(before, left)| Forgotten { before, left });
        Some(Self { suspended, forgotten })
    }
}

impl Kind for kind::Subject {
    declare!(Subject = b'u' "subject" in "subject"
        ("subject" Text) =>
        ("suspended_at" Time, "job" Text, "forgotten_before_us" Number, "forgotten_left" Json)
        Changed With(0));
}
