//! Everything that can be asked without changing anything, and what is answered.

mod counting;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::command::{JobReply, ObjectReply};
use crate::id::{Name, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::rows::{JobId, Role, Side};
use crate::time::Timestamp;

pub use counting::{
    BoardAnswer, BoardItem, CountedDay, CounterAnswer, CountingAnswer, CountingQuery, DayAnswer, DaysAnswer,
    LimitAnswer, Matching, PresenceAnswer, SeasonItem, SeasonsAnswer, StandingAnswer, SubjectDaysAnswer, UniqueAnswer,
};

/// A question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Query {
    /// Is this edge there?
    Edge {
        /// The relation.
        relation: Name,
        /// The object.
        object: ObjectId,
        /// The subject.
        subject: SubjectId,
    },
    /// How many edges does this object have, and is the viewer's among them?
    Count {
        /// The relation.
        relation: Name,
        /// The object.
        object: ObjectId,
        /// Whose edge to look for.
        viewer: Option<SubjectId>,
    },
    /// A page of an object's or a subject's edges, newest first.
    List {
        /// Whose list.
        side: Side,
        /// The relation.
        relation: Name,
        /// The object or the subject.
        id: String,
        /// Items on the page.
        limit: u32,
        /// Where to go on.
        cursor: Option<String>,
    },
    /// Counts and the viewer's edges for many objects at once.
    Feed {
        /// Whose edges to look for.
        viewer: Option<SubjectId>,
        /// The objects, answered in this order.
        objects: Vec<ObjectId>,
        /// The relations.
        relations: Vec<Name>,
        /// The counters; an object's id is the key.
        counters: Vec<Name>,
    },
    /// About what is counted.
    Counting(CountingQuery),
    /// A registered object.
    Object(ObjectId),
    /// A job.
    Job(JobId),
    /// Every API key, without secrets.
    ApiKeys,
}

/// An answer to a query.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// To [`Query::Edge`].
    Edge(EdgeAnswer),
    /// To [`Query::Count`].
    Count(CountAnswer),
    /// To [`Query::List`].
    List(ListAnswer),
    /// To [`Query::Feed`].
    Feed(FeedAnswer),
    /// To [`Query::Counting`].
    Counting(CountingAnswer),
    /// To [`Query::Object`].
    Object(ObjectReply),
    /// To [`Query::Job`].
    Job(JobReply),
    /// To [`Query::ApiKeys`].
    ApiKeys(ApiKeysAnswer),
}

/// Whether an edge is there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EdgeAnswer {
    /// Whether it is there.
    pub active: bool,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub created_at: Option<Timestamp>,
    /// Its kind, where the relation has `one_of`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub kind: Option<Name>,
    /// What is attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub meta: Option<Meta>,
}

/// An object's count in a relation.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CountAnswer {
    /// How many edges there are.
    pub count: i64,
    /// Whether the viewer's edge is among them; absent when no viewer is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// The kind of the viewer's edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub kind: Option<Name>,
    /// A count for each of `one_of`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<std::collections::BTreeMap<String, i64>>))]
    pub kinds: Option<BTreeMap<Name, i64>>,
}

/// A page of a list.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListAnswer {
    /// The edges, newest first.
    pub items: Vec<ListItem>,
    /// Where to go on; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One edge in a list, seen from one of its ends.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListItem {
    /// Who, in an object's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What, in a subject's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// Its kind, where the relation has `one_of`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub kind: Option<Name>,
    /// What is attached; null when nothing is.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub meta: Option<Meta>,
}

/// One answer per object, in the order asked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FeedAnswer {
    /// The objects.
    pub items: Vec<FeedItem>,
}

/// One object of a feed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FeedItem {
    /// The object.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub object: ObjectId,
    /// Its count, and the viewer's part, in each relation asked for.
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, CountAnswer>))]
    pub relations: BTreeMap<Name, CountAnswer>,
    /// The value of each counter asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, i64>))]
    pub counters: BTreeMap<Name, i64>,
}

/// Every API key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiKeysAnswer {
    /// The keys, revoked ones too.
    pub items: Vec<ApiKeyItem>,
}

/// One API key, without its secret.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiKeyItem {
    /// Its public part.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// `read`, `service` or `admin`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub role: Role,
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it stopped working.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub revoked_at: Option<Timestamp>,
}
