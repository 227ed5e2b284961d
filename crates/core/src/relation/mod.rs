//! Likes, bookmarks, reactions, follows: edges between subjects and objects.

mod def;
mod feed;
mod list;
pub mod read;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::batch::{InBatch, Written, need};
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{Name, ObjectId, SubjectId};
use crate::meta::Meta;
use crate::operation::{About, Operation, operations};
use crate::permission::Permission;
use crate::reply::{Answered, NamesMut, Told};
use crate::rows::TotalKey;
use crate::time::Timestamp;
use crate::view::{Stop, View};

pub use def::{Conditions, ReadPolicy, RelationDef};
pub use read::{Answer, Query};
pub use rule::{count_key, edge_key};
pub(crate) use rule::{remove, set_hidden};

/// Makes sure that an edge is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relate {
    /// The relation.
    pub relation: Name,
    /// What is acted on.
    pub object: ObjectId,
    /// Who acts.
    pub subject: SubjectId,
    /// Which kind, where the relation has `one_of`.
    pub kind: Option<Name>,
    /// What to attach.
    pub meta: Option<Meta>,
}

/// Makes sure that an edge is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unrelate {
    /// The relation.
    pub relation: Name,
    /// What is acted on.
    pub object: ObjectId,
    /// Who acts.
    pub subject: SubjectId,
}

/// Turns an edge into the opposite of what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Toggle {
    /// The relation.
    pub relation: Name,
    /// What is acted on.
    pub object: ObjectId,
    /// Who acts.
    pub subject: SubjectId,
    /// Which kind, if it is made.
    pub kind: Option<Name>,
    /// What to attach, if it is made.
    pub meta: Option<Meta>,
}

operations!(Relation: Relate, Unrelate, Toggle; counts nothing);

/// What may make an edge says the same, and differs in what is done.
macro_rules! making {
    ($operation:ident, $word:literal, $rule:path) => {
        impl Operation for $operation {
            type Reply = EdgeReply;

            fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<EdgeReply, Stop> {
                let edge = edge_key(&self.relation, &self.object, &self.subject);
                $rule(&edge, self.kind.as_ref(), self.meta.as_ref(), context, view)
            }

            fn about(&self) -> About<'_> {
                let about = About::caller(Permission::$operation).subject(&self.subject).object(&self.object);
                about.meta(self.meta.as_ref()).making(true)
            }

            fn acting_mut(&mut self) -> Option<&mut SubjectId> {
                Some(&mut self.subject)
            }

            fn written(&self) -> Option<serde_json::Value> {
                let Self { relation, object, subject, kind, meta } = self;
                Some(json!({
                    "op": $word, "relation": relation, "object": object, "subject": subject, "kind": kind, "meta": meta,
                }))
            }
        }

        impl InBatch for $operation {
            const TAKES: &'static [&'static str] = &["relation", "object", "subject", "kind", "meta"];

            fn read(written: Written) -> Result<Self, Refusal> {
                let (relation, object) = (need!(written.relation), need!(written.object));
                let (subject, meta) = (need!(written.subject), written.meta.map(|meta| meta.0));
                Ok(Self { relation, object, subject, kind: written.kind, meta })
            }
        }
    };
}

making!(Relate, "relate", rule::relate);
making!(Toggle, "toggle", rule::toggle);

impl Operation for Unrelate {
    type Reply = EdgeReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<EdgeReply, Stop> {
        rule::unrelate(&edge_key(&self.relation, &self.object, &self.subject), context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::Unrelate).subject(&self.subject).object(&self.object)
    }

    fn acting_mut(&mut self) -> Option<&mut SubjectId> {
        Some(&mut self.subject)
    }

    fn written(&self) -> Option<serde_json::Value> {
        let Self { relation, object, subject } = self;
        Some(json!({"op": "unrelate", "relation": relation, "object": object, "subject": subject}))
    }
}

impl InBatch for Unrelate {
    const TAKES: &'static [&'static str] = &["relation", "object", "subject"];

    fn read(written: Written) -> Result<Self, Refusal> {
        let (relation, object, subject) = (need!(written.relation), need!(written.object), need!(written.subject));
        Ok(Self { relation, object, subject })
    }
}

/// The state of an edge after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EdgeReply {
    /// The relation.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub relation: Name,
    /// What is acted on.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub object: ObjectId,
    /// Who acts.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub subject: SubjectId,
    /// Whether the edge is there now.
    pub active: bool,
    /// Whether this write altered anything.
    pub changed: bool,
    /// How many edges the object now has in the relation.
    pub count: i64,
    /// When the edge was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub created_at: Option<Timestamp>,
    /// Its kind, where the relation has `one_of`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub kind: Option<Name>,
    /// What is attached to it; null when nothing is. Absent when the edge is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub meta: Option<Option<Meta>>,
}

/// Tells null from absent: a remembered answer is given again exactly as it was.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl Answered for EdgeReply {
    fn correct(&mut self, told: &mut Told<'_>) {
        let (object, relation) = (self.object.clone(), self.relation.clone());
        self.count += (told.off)(&TotalKey::Object { object, relation });
    }

    fn names_mut(&mut self) -> NamesMut<'_> {
        // An edge that is there when its meta was stated has that one.
        let meta = self.meta.as_mut().filter(|_| self.active);
        NamesMut { object: Some(&mut self.object), subject: Some(&mut self.subject), key: None, meta }
    }
}
