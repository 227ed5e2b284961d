//! Counts of many objects in many relations, with the viewer's own edges: one load for all.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::RelationDef;
use super::read::{CountAnswer, FeedItem, may_read, object_of, shown_edge};
use crate::id::{KeyId, Name, ObjectId, SubjectId};
use crate::read::{Halt, Sight};
use crate::rows::{CountKey, EdgeKey, Key, Row, TotalKey};
use crate::view::Wants;

/// A relation whose condition says no is left out of an item, or refused where it was `the_one` asked for.
pub(super) fn read(
    objects: &[ObjectId],
    relations: &[Arc<RelationDef>],
    counters: &[Name],
    viewer: Option<&SubjectId>,
    the_one: bool,
    sight: &mut Sight<'_>,
) -> Result<Vec<FeedItem>, Halt> {
    let asks_object = relations.iter().any(|relation| relation.when.read.is_some());
    let found = sight.load(|| wants(objects, relations, counters, viewer, asks_object))?;
    let (mut rows, mut totals) = (found.rows.iter(), found.totals.iter().copied());
    let mut items = Vec::with_capacity(objects.len());
    for object in objects {
        let registered = if asks_object { rows.next() } else { None };
        let values = counters.iter().filter(|name| counter_of(object, name).is_some());
        let values = values.map(|name| (name.clone(), totals.next().unwrap_or_default())).collect();
        let mut counts = BTreeMap::new();
        for relation in relations {
            let edge = viewer.map(|_| rows.next());
            let meta = edge.and_then(shown_edge).and_then(|edge| edge.meta.as_ref());
            let answer = count_answer(relation, edge, &mut totals);
            match may_read(relation, object, object_of(registered), viewer, meta, sight) {
                Ok(()) => counts.insert(relation.name.clone(), answer),
                Err(refusal) if the_one => return Err(refusal.into()),
                Err(_) => None,
            };
        }
        items.push(FeedItem { object: object.clone(), relations: counts, counters: values });
    }
    Ok(items)
}

fn wants(
    objects: &[ObjectId],
    relations: &[Arc<RelationDef>],
    counters: &[Name],
    viewer: Option<&SubjectId>,
    asks_object: bool,
) -> Wants {
    let mut wants = Wants::default();
    for object in objects {
        wants.totals.extend(counters.iter().filter_map(|name| counter_of(object, name)));
        if asks_object {
            wants.rows.push(Key::Object(object.clone()));
        }
        for relation in relations {
            wants.totals.extend(totals_of(object, relation));
            if let Some(subject) = viewer {
                let (object, relation) = (object.clone(), relation.name.clone());
                wants.rows.push(Key::Edge(EdgeKey { object, relation, subject: subject.clone() }));
            }
        }
    }
    wants
}

/// A counter of an object, whose id is the key. A key is no longer than an id, so the longest objects have none.
fn counter_of(object: &ObjectId, counter: &Name) -> Option<TotalKey> {
    let key = KeyId::new(object.as_str()).ok()?;
    Some(TotalKey::Counter(CountKey { name: counter.clone(), key }))
}

/// The count first, then a total for each kind.
fn totals_of<'a>(object: &'a ObjectId, relation: &'a RelationDef) -> impl Iterator<Item = TotalKey> + 'a {
    let count = TotalKey::Object { object: object.clone(), relation: relation.name.clone() };
    let kinds = relation.one_of.iter().map(|kind| TotalKey::Kind {
        object: object.clone(),
        relation: relation.name.clone(),
        kind: kind.clone(),
    });
    std::iter::once(count).chain(kinds)
}

fn count_answer(
    relation: &RelationDef,
    edge: Option<Option<&Option<Row>>>,
    totals: &mut impl Iterator<Item = i64>,
) -> CountAnswer {
    let count = totals.next().unwrap_or_default();
    let kinds: BTreeMap<Name, i64> =
        relation.one_of.iter().map(|kind| (kind.clone(), totals.next().unwrap_or_default())).collect();
    let own = edge.map(shown_edge);
    CountAnswer {
        count,
        active: own.map(|own| own.is_some()),
        kind: own.flatten().and_then(|edge| edge.kind.clone()),
        kinds: (!relation.one_of.is_empty()).then_some(kinds),
    }
}
