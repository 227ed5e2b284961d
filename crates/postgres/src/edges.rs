//! Edges as columns: one array for each, which is how they travel in both directions.

use std::sync::Arc;

use tally_core::rows::{Edge, EdgeKey};
use tally_core::time::Stamp;
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::unreadable;
use crate::time::At;

/// Keys of edges, as three arrays.
#[derive(Default)]
pub(crate) struct Keys<'a> {
    objects: Vec<&'a str>,
    relations: Vec<&'a str>,
    subjects: Vec<&'a str>,
}

impl<'a> Keys<'a> {
    pub(crate) fn push(&mut self, key: &'a EdgeKey) {
        self.objects.push(key.object.as_str());
        self.relations.push(key.relation.as_str());
        self.subjects.push(key.subject.as_str());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(crate) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![&self.objects, &self.relations, &self.subjects]
    }
}

/// Whole edges, as seven arrays.
#[derive(Default)]
pub(crate) struct Edges<'a> {
    keys: Keys<'a>,
    created: Vec<At>,
    kinds: Vec<Option<&'a str>>,
    metas: Vec<Option<String>>,
    hidden: Vec<bool>,
}

impl<'a> Edges<'a> {
    pub(crate) fn push(&mut self, key: &'a EdgeKey, edge: &'a Edge) -> Result<(), StoreError> {
        let meta = edge.meta.as_ref().map(|meta| serde_json::to_string(&**meta)).transpose();
        self.metas.push(meta.map_err(|error| StoreError::Broken(error.to_string()))?);
        self.keys.push(key);
        self.created.push(At(edge.created));
        self.kinds.push(edge.kind.as_ref().map(Name::as_str));
        self.hidden.push(edge.hidden);
        Ok(())
    }

    /// A place that is taken for as long as the transaction lasts.
    pub(crate) fn push_placeholder(&mut self, key: &'a EdgeKey) {
        self.keys.push(key);
        self.created.push(At(Stamp::default()));
        self.kinds.push(None);
        self.metas.push(None);
        self.hidden.push(true);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values = self.keys.values();
        values.extend([&self.created as &(dyn ToSql + Sync), &self.kinds, &self.metas, &self.hidden]);
        values
    }
}

/// An edge from five columns that begin at `first`: created_at, kind, meta as text, hidden.
pub(crate) fn read(row: &Row, first: usize) -> Result<Edge, StoreError> {
    let (created, kind, meta, hidden): (At, Option<&str>, Option<&str>, bool) =
        (row.get(first), row.get(first + 1), row.get(first + 2), row.get(first + 3));
    parse(created, kind, meta, hidden)
}

/// An edge from its columns.
pub(crate) fn parse(created: At, kind: Option<&str>, meta: Option<&str>, hidden: bool) -> Result<Edge, StoreError> {
    let kind = kind.map(Name::new).transpose().map_err(|_| unreadable("an edge's kind"))?;
    let meta = meta.map(|text| serde_json::from_str(text).map(Arc::new)).transpose();
    Ok(Edge { created: created.0, kind, meta: meta.map_err(|_| unreadable("an edge's meta"))?, hidden })
}

/// A key from its columns.
pub(crate) fn key(object: &str, relation: &str, subject: &str) -> Result<EdgeKey, StoreError> {
    let bad = |_| unreadable(&format!("the edge {object:?} {relation:?} {subject:?}"));
    Ok(EdgeKey {
        object: ObjectId::new(object).map_err(bad)?,
        relation: Name::new(relation).map_err(bad)?,
        subject: SubjectId::new(subject).map_err(bad)?,
    })
}
