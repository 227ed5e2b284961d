//! The rows of relations: edges, and the lists and totals that they imply.

use serde::{Deserialize, Serialize};

use crate::id::{Name, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::rows::{Kind, TotalKey, columns, declare, kind};
use crate::time::Stamp;

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

columns!(EdgeKey { object, relation, subject });
columns!(Edge { created, kind, meta, hidden });

impl Kind for kind::Edge {
    declare!(Edge = b'e' "edge" in "relation"
        ("object" Text, "relation" Text, "subject" Text) =>
        ("created_us" Number, "kind" Text, "meta" Json, "hidden" Flag)
        Key With(0));

    fn counts(key: &EdgeKey, edge: &Edge, mut add: impl FnMut(TotalKey, i64)) {
        key.totals(edge).for_each(|total| add(total, 1));
    }
}
