//! What commands ask for, whoever answers.

use tally::core::command::Command;
use tally::core::meta::Meta;
use tally::core::query::CountingQuery;
use tally::core::rows::{Role, Side};
use tally::core::{Name, ObjectId, SubjectId};

/// One question or change; answered with what the HTTP contract says for it.
#[derive(Debug, Clone)]
pub(crate) enum Ask {
    /// Make sure that an edge is there.
    Relate { relation: Name, object: ObjectId, subject: SubjectId, kind: Option<Name>, meta: Option<Meta> },
    /// Make sure that it is not.
    Unrelate { relation: Name, object: ObjectId, subject: SubjectId },
    /// How many?
    Count { relation: Name, object: ObjectId, viewer: Option<SubjectId> },
    /// One page of a list.
    List { side: Side, relation: Name, id: String, limit: u32, cursor: Option<String> },
    /// Counts of many objects.
    Feed { viewer: Option<SubjectId>, objects: Vec<ObjectId>, relations: Vec<Name>, counters: Vec<Name> },
    /// Change what is counted.
    Change(Command),
    /// What is counted?
    Counting(CountingQuery),
    /// Make an API key.
    CreateKey { role: Role, name: String },
    /// All of them.
    Keys,
    /// End one.
    RevokeKey { id: String },
}
