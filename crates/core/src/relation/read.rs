//! Reading edges: one, an object's count, a list, a feed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{RelationDef, edge_key, feed, list};
use crate::condition::Facts;
use crate::error::Refusal;
use crate::id::{Name, ObjectId, SubjectId};
use crate::limits::{FEED_OBJECTS_MAX, FEED_RELATIONS_MAX};
use crate::meta::Meta;
use crate::object;
use crate::permission::Permission;
use crate::query::{Ask, Question, questions};
use crate::read::{Halt, Sight};
use crate::rows::{Edge, Key, Object, Row, Side};
use crate::time::Timestamp;
use crate::view::Wants;

/// Is this edge there?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdgeQuery {
    /// The relation.
    pub relation: Name,
    /// The object.
    pub object: ObjectId,
    /// The subject.
    pub subject: SubjectId,
}

/// How many edges does this object have, and is the viewer's among them?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountQuery {
    /// The relation.
    pub relation: Name,
    /// The object.
    pub object: ObjectId,
    /// Whose edge to look for.
    pub viewer: Option<SubjectId>,
}

/// A page of an object's or a subject's edges, newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListQuery {
    /// Whose list.
    pub side: Side,
    /// The relation.
    pub relation: Name,
    /// The object or the subject.
    pub id: String,
    /// Items on the page.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// Counts and the viewer's edges for many objects at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedQuery {
    /// Whose edges to look for.
    pub viewer: Option<SubjectId>,
    /// The objects, answered in this order.
    pub objects: Vec<ObjectId>,
    /// The relations.
    pub relations: Vec<Name>,
    /// The counters; an object's id is the key.
    pub counters: Vec<Name>,
}

questions!(Relation: Edge(EdgeQuery) -> EdgeAnswer, Count(CountQuery) -> CountAnswer, List(ListQuery) -> ListAnswer, Feed(FeedQuery) -> FeedAnswer; with FeedItem, ListItem);

impl Question for EdgeQuery {
    type Answer = EdgeAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadEdge).about(Some(&self.subject)).within(&self.relation));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<EdgeAnswer, Halt> {
        let key = edge_key(&self.relation, &self.object, &self.subject);
        let relation = sight.catalog.relation(&key.relation)?.clone();
        let found = sight.load(|| Wants::rows(vec![Key::Edge(key.clone()), Key::Object(key.object.clone())]))?;
        let edge = shown_edge(found.rows.first());
        let meta = edge.and_then(|edge| edge.meta.as_ref());
        may_read(&relation, &key.object, object_of(found.rows.get(1)), Some(&key.subject), meta, sight)?;
        Ok(match edge {
            Some(edge) => EdgeAnswer {
                active: true,
                created_at: Some(edge.created.time()),
                kind: edge.kind.clone(),
                meta: edge.meta.clone(),
            },
            None => EdgeAnswer { active: false, created_at: None, kind: None, meta: None },
        })
    }
}

impl Question for CountQuery {
    type Answer = CountAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadObject).about(self.viewer.as_ref()).within(&self.relation));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<CountAnswer, Halt> {
        let relation = sight.catalog.relation(&self.relation)?.clone();
        let objects = std::slice::from_ref(&self.object);
        let mut items = feed::read(objects, &[relation], &[], self.viewer.as_ref(), true, sight)?;
        let counts = items.pop().and_then(|item| item.relations.into_values().next());
        Ok(counts.unwrap_or_default())
    }
}

impl Question for ListQuery {
    type Answer = ListAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        match self.side {
            Side::Object => ask(Ask::of(Permission::ListSubjects).within(&self.relation)),
            // An id that is none is nobody's: it is refused when it is read.
            Side::Subject => {
                let subject = SubjectId::new(&self.id).ok();
                ask(Ask::of(Permission::ListObjects).about(subject.as_ref()).within(&self.relation));
            }
        }
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<ListAnswer, Halt> {
        list::read(self, sight)
    }
}

impl Question for FeedQuery {
    type Answer = FeedAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        if self.relations.is_empty() || !self.counters.is_empty() {
            ask(Ask::of(Permission::ReadCounter));
        }
        for relation in &self.relations {
            ask(Ask::of(Permission::ReadFeed).about(self.viewer.as_ref()).within(relation));
        }
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<FeedAnswer, Halt> {
        if self.objects.len() > FEED_OBJECTS_MAX || self.relations.len().max(self.counters.len()) > FEED_RELATIONS_MAX {
            let text = format!(
                "a read has at most {FEED_OBJECTS_MAX} objects and {FEED_RELATIONS_MAX} relations and counters"
            );
            return Err(Refusal::bad_request(text).into());
        }
        let found = self.relations.iter().map(|name| sight.catalog.relation(name).cloned());
        let relations: Vec<Arc<RelationDef>> = found.collect::<Result<_, _>>()?;
        for counter in &self.counters {
            sight.catalog.counter(counter)?;
        }
        let items = feed::read(&self.objects, &relations, &self.counters, self.viewer.as_ref(), false, sight)?;
        Ok(FeedAnswer { items })
    }
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

/// A visible edge.
pub(super) fn shown_edge(row: Option<&Option<Row>>) -> Option<&Edge> {
    row.and_then(|row| row.as_ref()?.edge()).filter(|edge| !edge.hidden)
}

/// A registered object.
pub(super) fn object_of(row: Option<&Option<Row>>) -> Option<&Object> {
    row.and_then(|row| row.as_ref()?.object())
}

/// Asks a relation's condition, where it has one, whether this may be read.
pub fn may_read(
    relation: &RelationDef,
    id: &ObjectId,
    found: Option<&Object>,
    subject: Option<&SubjectId>,
    meta: Option<&Meta>,
    sight: &Sight<'_>,
) -> Result<(), Refusal> {
    if relation.when.read.is_none() {
        return Ok(());
    }
    holds(relation, object::facts(id, found), subject.map(SubjectId::as_str), meta, sight)
}

/// The same of facts that are at hand.
pub(super) fn holds(
    relation: &RelationDef,
    object: serde_json::Value,
    subject: Option<&str>,
    meta: Option<&Meta>,
    sight: &Sight<'_>,
) -> Result<(), Refusal> {
    let Some(condition) = &relation.when.read else { return Ok(()) };
    let meta = meta.map(|meta| &**meta);
    condition.check(Facts { auth: sight.auth, object, subject, meta, now: sight.now })
}
