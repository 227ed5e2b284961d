//! Likes, bookmarks, favourites, reactions: an edge is there or it is not, and its counts follow.

use super::EdgeReply;
use crate::catalog::RelationDef;
use crate::condition::{Condition, Facts};
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{Name, ObjectId, SubjectId};
use crate::meta::{self, Meta};
use crate::rows::{Edge, EdgeKey, Key, Object, Row, Subject, TotalKey};
use crate::view::{Stop, View};
use crate::{limit, object, subject};

/// Names the edge of a command.
pub fn edge_key(relation: &Name, object: &ObjectId, subject: &SubjectId) -> EdgeKey {
    EdgeKey { object: object.clone(), relation: relation.clone(), subject: subject.clone() }
}

/// Makes sure that the edge is there.
pub(super) fn relate(
    key: &EdgeKey,
    kind: Option<&Name>,
    meta: Option<&Meta>,
    context: &Context<'_>,
    view: &mut View,
) -> Result<EdgeReply, Stop> {
    let relation = context.catalog.relation(&key.relation)?;
    check_request(relation, kind, meta)?;
    want(relation, key, relation.when.relate.as_ref(), view)?;
    let subject = subject::read(&key.subject, view)?;
    let existing = view.edge(key)?;
    check_object(relation, key, relation.when.relate.as_ref(), meta, context, view)?;
    if subject.suspended.is_some() {
        return Err(Refusal::Suspended(key.subject.clone()).into());
    }
    match existing {
        Some(edge) if subject.has_forgotten(&edge, context.stamp) => {
            drop_forgotten(key, &edge, context, view)?;
            create(relation, key, kind, meta, context, view)
        }
        Some(edge) => relate_again(relation, key, edge, kind, meta, context, view),
        None => create(relation, key, kind, meta, context, view),
    }
}

/// Makes sure that the edge is not there.
pub(super) fn unrelate(key: &EdgeKey, context: &Context<'_>, view: &mut View) -> Result<EdgeReply, Stop> {
    let relation = context.catalog.relation(&key.relation)?;
    let condition = relation.when.unrelate.as_ref();
    want(relation, key, condition, view)?;
    let mut existing = view.edge(key)?;
    let subject = subject::read(&key.subject, view)?;
    if let Some(edge) = existing.take_if(|edge| subject.has_forgotten(edge, context.stamp)) {
        // The job would come to it sooner or later; to the caller it was not there.
        drop_forgotten(key, &edge, context, view)?;
    }
    if let Some(condition) = condition {
        let meta = existing.as_ref().and_then(|edge| edge.meta.clone());
        let found = if condition.reads_object() { object::read(&key.object, view)? } else { None };
        check_condition(condition, key, found.as_ref(), meta.as_ref(), context)?;
    }
    let Some(edge) = existing else {
        return inactive(key, false, view);
    };
    pass_limit(relation, key, context, view)?;
    remove(key, &edge, context, view)?;
    view.charge_total();
    if relation.limit_per_subject.is_some() {
        view.charge_total();
    }
    inactive(key, true, view)
}

/// Relates what is not related, and unrelates what is.
pub(super) fn toggle(
    key: &EdgeKey,
    kind: Option<&Name>,
    meta: Option<&Meta>,
    context: &Context<'_>,
    view: &mut View,
) -> Result<EdgeReply, Stop> {
    let relation = context.catalog.relation(&key.relation)?;
    want(relation, key, None, view)?;
    let subject = subject::read(&key.subject, view)?;
    let edge = view.kept(&Key::Edge(key.clone()), Row::into_edge)?;
    match edge.filter(|edge| !subject.has_forgotten(edge, context.stamp)) {
        Some(_) => unrelate(key, context, view),
        None => relate(key, kind, meta, context, view),
    }
}

/// Takes an edge away with everything that counts it. Jobs use it too.
pub(crate) fn remove(key: &EdgeKey, edge: &Edge, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    uncount(key, edge, context, view)?;
    view.set(Key::Edge(key.clone()), None)
}

/// The same for an edge that counts as gone already, so that it costs the caller nothing.
fn drop_forgotten(key: &EdgeKey, edge: &Edge, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    uncount(key, edge, context, view)?;
    view.set_uncounted(Key::Edge(key.clone()), None)
}

fn uncount(key: &EdgeKey, edge: &Edge, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    for total in key.totals(edge) {
        view.add(&total, -1)?;
    }
    let mut known = subject::read(&key.subject, view)?;
    if known.has_forgotten(edge, context.stamp)
        && let Some(left) = known.forgotten.as_mut().and_then(|forgotten| forgotten.left.get_mut(&key.relation))
    {
        *left -= 1;
        view.set_uncounted(Key::Subject(key.subject.clone()), known.into_row())?;
    }
    Ok(())
}

/// Hides an edge or shows it again; the subject's own total counts both.
pub(crate) fn set_hidden(key: &EdgeKey, edge: &Edge, hidden: bool, view: &mut View) -> Result<(), Stop> {
    let shown = Edge { hidden: false, ..edge.clone() };
    for total in key.totals(&shown).filter(|total| !matches!(total, TotalKey::Subject { .. })) {
        view.add(&total, if hidden { -1 } else { 1 })?;
    }
    view.set(Key::Edge(key.clone()), Some(Row::Edge(Edge { hidden, ..edge.clone() })))
}

/// The count that every answer carries.
pub fn count_key(key: &EdgeKey) -> TotalKey {
    TotalKey::Object { object: key.object.clone(), relation: key.relation.clone() }
}

/// Names all that the rule may look at, so that one load brings it.
fn want(relation: &RelationDef, key: &EdgeKey, condition: Option<&Condition>, view: &mut View) -> Result<(), Stop> {
    let mut rows = vec![Key::Edge(key.clone()), Key::Subject(key.subject.clone())];
    if looks_at_object(relation, condition) {
        rows.push(Key::Object(key.object.clone()));
    }
    rows.extend(limit::row(relation.rate_limit.as_ref(), Some(&key.subject), key.object.as_str()));
    let mut totals = vec![count_key(key), subject_total(key)];
    let (object, name) = (&key.object, &key.relation);
    totals.extend(relation.one_of.iter().map(|kind| TotalKey::Kind {
        object: object.clone(),
        relation: name.clone(),
        kind: kind.clone(),
    }));
    view.want(&rows, &totals)
}

/// The limit that a change has to pass; what changes nothing is free.
fn pass_limit(relation: &RelationDef, key: &EdgeKey, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    limit::pass(relation.rate_limit.as_ref(), Some(&key.subject), key.object.as_str(), context, view)
}

fn subject_total(key: &EdgeKey) -> TotalKey {
    TotalKey::Subject { subject: key.subject.clone(), relation: key.relation.clone() }
}

fn looks_at_object(relation: &RelationDef, condition: Option<&Condition>) -> bool {
    relation.requires_object || !relation.allow_self || condition.is_some_and(Condition::reads_object)
}

/// What can be refused without looking at a row.
fn check_request(relation: &RelationDef, kind: Option<&Name>, meta: Option<&Meta>) -> Result<(), Refusal> {
    let kinds = || relation.one_of.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
    match kind {
        Some(_) if relation.one_of.is_empty() => {
            return Err(Refusal::bad_request(format!("`{}` has no kinds; leave out kind", relation.name)));
        }
        Some(kind) if !relation.one_of.contains(kind) => {
            return Err(Refusal::bad_request(format!("kind is one of {}", kinds())));
        }
        None if !relation.one_of.is_empty() => {
            return Err(Refusal::bad_request(format!("kind is missing; it is one of {}", kinds())));
        }
        _ => {}
    }
    if let Some(map) = meta {
        meta::check_bounds(map, "meta")?;
    }
    match &relation.meta {
        Some(shape) => shape.check(meta),
        None => Ok(()),
    }
}

/// The rules about the object, decided on the same view as the edge.
fn check_object(
    relation: &RelationDef,
    key: &EdgeKey,
    condition: Option<&Condition>,
    meta: Option<&Meta>,
    context: &Context<'_>,
    view: &mut View,
) -> Result<(), Stop> {
    let found = if looks_at_object(relation, condition) { object::read(&key.object, view)? } else { None };
    if relation.requires_object && found.is_none() {
        return Err(Refusal::ObjectNotFound(key.object.clone()).into());
    }
    if !relation.allow_self && object::is_owned_by(&key.object, found.as_ref(), &key.subject) {
        return Err(Refusal::Forbidden(format!("a subject cannot {} its own object", relation.name)).into());
    }
    match condition {
        Some(condition) => Ok(check_condition(condition, key, found.as_ref(), meta, context)?),
        None => Ok(()),
    }
}

fn check_condition(
    condition: &Condition,
    key: &EdgeKey,
    found: Option<&Object>,
    meta: Option<&Meta>,
    context: &Context<'_>,
) -> Result<(), Refusal> {
    let facts = Facts {
        auth: context.auth,
        object: object::facts(&key.object, found),
        subject: Some(key.subject.as_str()),
        meta: meta.map(|map| &**map),
        now: context.now(),
    };
    condition.check(facts)
}

fn create(
    relation: &RelationDef,
    key: &EdgeKey,
    kind: Option<&Name>,
    meta: Option<&Meta>,
    context: &Context<'_>,
    view: &mut View,
) -> Result<EdgeReply, Stop> {
    let subject = subject::read(&key.subject, view)?;
    if let Some(limit) = relation.limit_per_subject {
        if view.total_decided(&subject_total(key))? - forgotten_of(&subject, &key.relation) >= i64::from(limit) {
            return Err(Refusal::LimitExceeded { relation: relation.name.clone(), limit }.into());
        }
        view.charge_total();
    }
    pass_limit(relation, key, context, view)?;
    let meta = meta.filter(|map| !map.is_empty()).cloned();
    let edge = Edge { created: subject.stamp(context.stamp), kind: kind.cloned(), meta, hidden: false };
    for total in key.totals(&edge) {
        view.add(&total, 1)?;
    }
    view.charge_total();
    view.set(Key::Edge(key.clone()), Some(Row::Edge(edge.clone())))?;
    active(key, &edge, true, view)
}

/// Edges that are counted still, and are gone.
fn forgotten_of(subject: &Subject, relation: &Name) -> i64 {
    subject.forgotten.as_ref().and_then(|forgotten| forgotten.left.get(relation)).copied().unwrap_or(0)
}

/// The edge is there already: the same again changes nothing, another kind replaces it,
/// another meta is refused unless the relation lets it be replaced.
fn relate_again(
    relation: &RelationDef,
    key: &EdgeKey,
    edge: Edge,
    kind: Option<&Name>,
    meta: Option<&Meta>,
    context: &Context<'_>,
    view: &mut View,
) -> Result<EdgeReply, Stop> {
    if kind != edge.kind.as_ref() {
        pass_limit(relation, key, context, view)?;
        remove(key, &edge, context, view)?;
        // A replacement is one write of the edge, not a removal and a creation.
        let meta = meta.filter(|map| !map.is_empty()).cloned();
        let created = subject::read(&key.subject, view)?.stamp(context.stamp);
        let next = Edge { created, kind: kind.cloned(), meta, hidden: false };
        for total in key.totals(&next) {
            view.add(&total, 1)?;
        }
        view.charge_total();
        view.set_uncounted(Key::Edge(key.clone()), Some(Row::Edge(next.clone())))?;
        return active(key, &next, true, view);
    }
    let stated = meta.filter(|map| Some(*map) != edge.meta.as_ref() && !(map.is_empty() && edge.meta.is_none()));
    let mut next = edge.clone();
    if let Some(map) = stated {
        if !relation.mutable_meta {
            return Err(Refusal::Immutable.into());
        }
        pass_limit(relation, key, context, view)?;
        next.meta = Some(map.clone()).filter(|map| !map.is_empty());
    }
    if next.hidden {
        // Its subject was restored, and the job that shows its edges has not come to this one.
        set_hidden(key, &next, false, view)?;
        next.hidden = false;
    } else if next != edge {
        view.set(Key::Edge(key.clone()), Some(Row::Edge(next.clone())))?;
    }
    let changed = next != edge;
    active(key, &next, changed, view)
}

fn active(key: &EdgeKey, edge: &Edge, changed: bool, view: &mut View) -> Result<EdgeReply, Stop> {
    Ok(EdgeReply {
        created_at: Some(edge.created.time()),
        kind: edge.kind.clone(),
        meta: Some(edge.meta.clone()),
        ..reply(key, true, changed, view)?
    })
}

fn inactive(key: &EdgeKey, changed: bool, view: &mut View) -> Result<EdgeReply, Stop> {
    reply(key, false, changed, view)
}

fn reply(key: &EdgeKey, active: bool, changed: bool, view: &mut View) -> Result<EdgeReply, Stop> {
    Ok(EdgeReply {
        relation: key.relation.clone(),
        object: key.object.clone(),
        subject: key.subject.clone(),
        active,
        changed,
        count: view.total(&count_key(key))?,
        created_at: None,
        kind: None,
        meta: None,
    })
}
