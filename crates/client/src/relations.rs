//! Relations: who is related to what.

use serde_json::{Map, Value, json};
use tally_core::command::{Relate, Toggle, Unrelate};
use tally_core::meta::Meta;
use tally_core::query::{CountAnswer, CountQuery, EdgeAnswer, EdgeQuery, FeedAnswer, FeedQuery, ListAnswer, ListQuery};
use tally_core::reply::EdgeReply;
use tally_core::rows::Side;
use tally_core::{Name, ObjectId, SubjectId};

use crate::request::requests;
use crate::{Call, Client};

/// Which page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Items on it. Default: the server's.
    pub limit: Option<u32>,
    /// Where the page before ended. Default: the first page.
    pub cursor: Option<String>,
}

impl Page {
    fn query(&self) -> [(&'static str, Option<String>); 2] {
        [("limit", self.limit.map(|limit| limit.to_string())), ("cursor", self.cursor.clone())]
    }
}

impl Client {
    /// Makes sure that an edge is there: of a kind where the relation has `one_of`, with meta where it has a shape.
    pub fn relate(
        &self,
        relation: &Name,
        object: &ObjectId,
        subject: &SubjectId,
        kind: Option<&Name>,
        meta: Option<&Meta>,
    ) -> Call<EdgeReply> {
        with_edge(self.put(&edge(relation, object, subject)), kind, meta)
    }

    /// Makes sure that an edge is not there.
    pub fn unrelate(&self, relation: &Name, object: &ObjectId, subject: &SubjectId) -> Call<EdgeReply> {
        self.delete(&edge(relation, object, subject))
    }

    /// Makes an edge where there is none, and takes it away where there is one.
    pub fn toggle(
        &self,
        relation: &Name,
        object: &ObjectId,
        subject: &SubjectId,
        kind: Option<&Name>,
        meta: Option<&Meta>,
    ) -> Call<EdgeReply> {
        let [v1, relations, relation, object, subject] = edge(relation, object, subject);
        with_edge(self.post(&[v1, relations, relation, object, subject, "toggle"]), kind, meta)
    }

    /// Whether a subject is related to an object.
    pub fn edge(&self, relation: &Name, object: &ObjectId, subject: &SubjectId) -> Call<EdgeAnswer> {
        self.get(&edge(relation, object, subject))
    }

    /// How many are related to an object, and whether the viewer is among them.
    pub fn count(&self, relation: &Name, object: &ObjectId, viewer: Option<&SubjectId>) -> Call<CountAnswer> {
        let viewer = [("viewer", viewer.map(ToString::to_string))];
        self.get_with(&["v1", "relations", relation.as_str(), object.as_str()], &viewer)
    }

    /// Who is related to an object, newest first.
    pub fn subjects(&self, relation: &Name, object: &ObjectId, page: &Page) -> Call<ListAnswer> {
        self.get_with(&["v1", "relations", relation.as_str(), object.as_str(), "subjects"], &page.query())
    }

    /// What a subject is related to, newest first.
    pub fn objects(&self, relation: &Name, subject: &SubjectId, page: &Page) -> Call<ListAnswer> {
        self.get_with(&["v1", "subjects", subject.as_str(), "relations", relation.as_str()], &page.query())
    }

    /// The counts of many objects at once, and where the viewer is among them. An object's id is the key of its counters.
    pub fn read(
        &self,
        objects: &[ObjectId],
        relations: &[Name],
        counters: &[Name],
        viewer: Option<&SubjectId>,
    ) -> Call<FeedAnswer> {
        let body = json!({"viewer": viewer, "objects": objects, "relations": relations, "counters": counters});
        self.post(&["v1", "read"]).json(&body)
    }
}

fn edge<'a>(relation: &'a Name, object: &'a ObjectId, subject: &'a SubjectId) -> [&'a str; 5] {
    ["v1", "relations", relation.as_str(), object.as_str(), subject.as_str()]
}

fn with_edge(call: Call<EdgeReply>, kind: Option<&Name>, meta: Option<&Meta>) -> Call<EdgeReply> {
    let mut body = Map::new();
    body.extend(kind.map(|kind| ("kind".to_owned(), json!(kind))));
    body.extend(meta.map(|meta| ("meta".to_owned(), json!(meta))));
    if body.is_empty() { call } else { call.json(&Value::Object(body)) }
}

requests! {
    Relate => EdgeReply: |ask, client| client.relate(&ask.relation, &ask.object, &ask.subject, ask.kind.as_ref(), ask.meta.as_ref());
    Unrelate => EdgeReply: |ask, client| client.unrelate(&ask.relation, &ask.object, &ask.subject);
    Toggle => EdgeReply: |ask, client| client.toggle(&ask.relation, &ask.object, &ask.subject, ask.kind.as_ref(), ask.meta.as_ref());
    EdgeQuery => EdgeAnswer: |ask, client| client.edge(&ask.relation, &ask.object, &ask.subject);
    CountQuery => CountAnswer: |ask, client| client.count(&ask.relation, &ask.object, ask.viewer.as_ref());
    ListQuery => ListAnswer: |ask, client| {
        let page = Page { limit: Some(ask.limit), cursor: ask.cursor.clone() }.query();
        let (id, relation) = (ask.id.as_str(), ask.relation.as_str());
        match ask.side {
            Side::Object => client.get_with(&["v1", "relations", relation, id, "subjects"], &page),
            Side::Subject => client.get_with(&["v1", "subjects", id, "relations", relation], &page),
        }
    };
    FeedQuery => FeedAnswer: |ask, client| client.read(&ask.objects, &ask.relations, &ask.counters, ask.viewer.as_ref());
}
