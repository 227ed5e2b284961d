//! The rows that stores keep: typed and closed, so that each store lays them out in its own idiom.

mod cell;
mod columns;
mod counting;
mod declared;
mod job;
mod report;
mod subject;
#[cfg(test)]
mod tests;
mod total;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::id::{Name, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::time::{Stamp, Timestamp};

pub use cell::{Cell, Cells, Type};
pub use counting::{
    Among, Attendee, Bits, Board, BoardKey, CHUNK_BITS, ChunkKey, CountKey, LimitKey, SKETCH_ERROR, Score, ScoreKey,
    Sketch, Standing, Used, UsedState,
};

pub use declared::{Column, Declared, Due, Guard, Home, RowKind};
pub use job::{Job, JobId, JobKind, Round, Work};
pub use report::{DriftItem, VerifyReport};
pub use subject::{Forgotten, Names, Subject, Suspension};
pub use total::{Number, TotalKey, TotalOf};

/// The two ends of an edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Side {
    /// What is acted on.
    Object,
    /// Who acts.
    Subject,
}

/// Names one edge.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EdgeKey {
    /// What is acted on.
    pub object: ObjectId,
    /// The kind of edge.
    pub relation: Name,
    /// Who acts.
    pub subject: SubjectId,
}

/// An edge: it exists or it does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// When it was made, and its place in both lists.
    pub created: Stamp,
    /// Which of the relation's kinds it is, where the relation has kinds.
    pub kind: Option<Name>,
    /// What the caller attached.
    pub meta: Option<Meta>,
    /// Hidden while its subject is suspended: not counted, not listed, not lost.
    pub hidden: bool,
}

/// Names a row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Key {
    /// An edge.
    Edge(EdgeKey),
    /// A registered object.
    Object(ObjectId),
    /// What is known about a subject beyond its edges.
    Subject(SubjectId),
    /// A remembered answer.
    Replay(ReplayKey),
    /// A piece of long work.
    Job(JobId),
    /// An API key.
    ApiKey(String),
    /// A counter. Its value is a total, see [`TotalKey::Counter`]; it is named as a row where all rows are listed.
    Counter(CountKey),
    /// When a counter was last added to, where it keeps that.
    Touched(CountKey),
    /// A unique count.
    Unique(CountKey),
    /// What has been used of a limit.
    Limit(LimitKey),
    /// How many subjects of a sheet have been numbered.
    Sheet(Name),
    /// Which chunks a day has.
    Day(Name, Day),
    /// A part of a day's bitmap.
    Chunk(ChunkKey),
    /// A subject on a sheet.
    Attendee(Name, SubjectId),
    /// What is known of a board beyond its scores.
    Board(Name),
    /// A member's score.
    Score(ScoreKey),
    /// Every name that was ever declared.
    Names,
}

/// The value of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Row {
    /// See [`Edge`].
    Edge(Edge),
    /// See [`Object`].
    Object(Object),
    /// See [`Subject`].
    Subject(Subject),
    /// See [`Replay`].
    Replay(Replay),
    /// See [`Job`].
    Job(Job),
    /// See [`ApiKey`].
    ApiKey(ApiKey),
    /// A counter's value; never 0, which is a counter that is not there.
    Counter(i64),
    /// When the counter was last added to.
    Touched(Timestamp),
    /// See [`Sketch`].
    Unique(Sketch),
    /// See [`Used`].
    Limit(Used),
    /// The next number.
    Sheet(u64),
    /// The chunks, in order.
    Day(Vec<u64>),
    /// The lower parts of the numbers in it.
    Chunk(Bits),
    /// See [`Attendee`].
    Attendee(Attendee),
    /// See [`Board`].
    Board(Board),
    /// See [`Score`].
    Score(Score),
    /// See [`Names`].
    Names(Names),
}

/// A registered object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Object {
    /// Free text such as `published`.
    pub status: Option<String>,
    /// Free-form attributes; `owner` is what `allow_self` looks at.
    pub attributes: Meta,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

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

/// Names one newest-first list of edges.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ListKey {
    /// Whose list it is.
    pub side: Side,
    /// The object or the subject.
    pub id: String,
    /// One relation, or all of them one after the other.
    pub relation: Option<Name>,
    /// The hidden edges rather than the visible ones.
    pub hidden: bool,
}

impl EdgeKey {
    /// The two lists in which an edge stands. Stores with indexes of their own derive the same.
    pub fn lists(&self, edge: &Edge) -> [ListKey; 2] {
        [Side::Object, Side::Subject].map(|side| ListKey {
            side,
            id: self.end(side).to_owned(),
            relation: Some(self.relation.clone()),
            hidden: edge.hidden,
        })
    }

    /// The id on one side.
    pub fn end(&self, side: Side) -> &str {
        match side {
            Side::Object => self.object.as_str(),
            Side::Subject => self.subject.as_str(),
        }
    }

    /// The id on the side across.
    pub fn other(&self, side: Side) -> &str {
        match side {
            Side::Object => self.subject.as_str(),
            Side::Subject => self.object.as_str(),
        }
    }

    /// The totals that count this edge.
    pub fn totals<'a>(&'a self, edge: &'a Edge) -> impl Iterator<Item = TotalKey> + 'a {
        let (object, relation) = (&self.object, &self.relation);
        let shown = (!edge.hidden).then(|| TotalKey::Object { object: object.clone(), relation: relation.clone() });
        let kind = edge.kind.as_ref().filter(|_| !edge.hidden).map(|kind| TotalKey::Kind {
            object: object.clone(),
            relation: relation.clone(),
            kind: kind.clone(),
        });
        let subject = TotalKey::Subject { subject: self.subject.clone(), relation: relation.clone() };
        shown.into_iter().chain(kind).chain([subject])
    }
}

/// One row's change. `before` is what the decision saw, so that a store can take down what
/// depends on it without reading again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The row as it was.
    pub before: Option<Row>,
    /// The row as it will be.
    pub after: Option<Row>,
}

/// Everything that a batch changes, all or nothing. Each key stands in it once, in no order: a
/// store that locks rows sorts them first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Rows that are put or deleted.
    pub rows: Vec<(Key, Change)>,
    /// Additions to totals. They never conflict.
    pub adds: Vec<(TotalKey, i64)>,
    /// The newest stamp that the batch used.
    pub stamp: Stamp,
}

impl Changes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.adds.is_empty()
    }
}
