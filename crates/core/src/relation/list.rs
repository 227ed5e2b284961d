//! A page of an object's or a subject's edges, newest first.

use super::RelationDef;
use super::read::{ListAnswer, ListItem, ListQuery, holds, may_read, object_of};
use crate::cursor::Cursor;
use crate::error::Refusal;
use crate::id::ObjectId;
use crate::limits::PAGE_ITEMS_MAX;
use crate::range::{Place, Range};
use crate::read::{Halt, Sight};
use crate::rows::{Edge, EdgeKey, Key, ListKey, Row, Side};
use crate::view::Wants;

pub(super) fn read(query: &ListQuery, sight: &mut Sight<'_>) -> Result<ListAnswer, Halt> {
    let ListQuery { side, relation: name, id, limit, cursor } = query;
    let relation = sight.catalog.relation(name)?.clone();
    if *limit == 0 || *limit > PAGE_ITEMS_MAX {
        return Err(Refusal::bad_request(format!("limit is 1 to {PAGE_ITEMS_MAX}")).into());
    }
    let per_item = check(&relation, *side, id, sight)?;
    let list = ListKey { side: *side, id: id.clone(), relation: Some(name.clone()), hidden: false };
    let after = cursor.as_deref().map(|text| Cursor::decode(text, &list)).transpose()?;
    let range = || {
        let after = after.map(|cursor| Place { relation: name.clone(), cursor });
        Range::List { after, list: list.clone() }
    };
    let page = sight.scan(range, *limit as usize)?;
    let edges: Vec<(&EdgeKey, &Edge)> = page.items.iter().filter_map(as_edge).collect();
    let last = edges.last().filter(|_| page.more);
    let next_cursor = last.map(|(key, edge)| Place::of(&list, key, edge).cursor.encode(&list));
    let edges = if per_item { readable(&relation, edges, sight)? } else { edges };
    Ok(ListAnswer { items: edges.into_iter().map(|(key, edge)| item(*side, key, edge)).collect(), next_cursor })
}

/// Asks a list's condition: of the object whose list it is, or of the subject. One that is about what differs from
/// item to item is asked of each, see [`readable`]: true.
fn check(relation: &RelationDef, side: Side, id: &str, sight: &mut Sight<'_>) -> Result<bool, Halt> {
    let Some(condition) = &relation.when.read else { return Ok(false) };
    let per_item = match side {
        Side::Object => condition.reads_subject(),
        Side::Subject => condition.reads_object(),
    };
    if per_item || condition.reads_meta() {
        return Ok(true);
    }
    match side {
        Side::Object => {
            let id = ObjectId::new(id)?;
            let row = sight.row(|| Key::Object(id.clone()))?;
            may_read(relation, &id, object_of(Some(&row)), None, None, sight)?;
        }
        Side::Subject => holds(relation, serde_json::Value::Null, Some(id), None, sight)?,
    }
    Ok(false)
}

/// Those edges of a page that the relation's condition lets whoever asks read.
fn readable<'a>(
    relation: &RelationDef,
    edges: Vec<(&'a EdgeKey, &'a Edge)>,
    sight: &mut Sight<'_>,
) -> Result<Vec<(&'a EdgeKey, &'a Edge)>, Halt> {
    let objects = || Wants::rows(edges.iter().map(|(key, _)| Key::Object(key.object.clone())).collect());
    // The page was another question, so these need not be of one moment.
    let found = sight.load_loosely(objects)?;
    let sight = &*sight;
    let may = |((key, edge), object): &((&EdgeKey, &Edge), &Option<Row>)| {
        may_read(relation, &key.object, object_of(Some(object)), Some(&key.subject), edge.meta.as_ref(), sight).is_ok()
    };
    Ok(edges.into_iter().zip(&found.rows).filter(may).map(|(edge, _)| edge).collect())
}

fn as_edge((key, row): &(Key, Row)) -> Option<(&EdgeKey, &Edge)> {
    let (Key::Edge(key), Row::Edge(edge)) = (key, row) else { return None };
    Some((key, edge))
}

fn item(side: Side, key: &EdgeKey, edge: &Edge) -> ListItem {
    let other = Some(key.other(side).to_owned());
    let (subject, object) = match side {
        Side::Object => (other, None),
        Side::Subject => (None, other),
    };
    ListItem { subject, object, created_at: edge.created.time(), kind: edge.kind.clone(), meta: edge.meta.clone() }
}
