//! New likes in bulk: what nearly every commit on one node consists of, in few words.

use std::collections::HashMap;
use std::sync::RwLock;

use foldhash::fast::RandomState;

use tally_core::hash::fingerprint;
use tally_core::rows::{Change, Changes, EdgeKey, Key, Row, Side, TotalKey};
use tally_core::time::Stamp;
use tally_core::{Name, ObjectId};
use tally_engine::{Seen, StoreError};

use crate::keys::{Keys, edges_entry};
use crate::plan::{Explained, Plan, Usual};
use crate::rows::has_data;
use crate::words::{MEMBERS_MAX, Words};

/// New edges of one list.
#[derive(Default)]
struct Group<'a> {
    edges: Vec<(&'a EdgeKey, Stamp)>,
    /// The addition that is their count.
    addition: Option<usize>,
}

/// Lists that had edges when this server last saw them, so that they stand in the index already. One that has
/// become empty since is found out.
#[derive(Default)]
pub(crate) struct Listed(RwLock<foldhash::HashSet<u64>>);

/// Some tens of megabytes.
const LISTED_MAX: usize = 2_000_000;

impl Listed {
    fn knows(&self, name: u64) -> bool {
        self.0.read().is_ok_and(|known| known.contains(&name))
    }

    /// They have edges now.
    pub(crate) fn learn(&self, names: &[u64]) {
        if names.iter().all(|name| self.knows(*name)) {
            return;
        }
        if let Ok(mut known) = self.0.write() {
            if known.len() > LISTED_MAX {
                known.clear();
            }
            known.extend(names);
        }
    }

    /// One of them has none any more.
    pub(crate) fn forget(&self) {
        if let Ok(mut known) = self.0.write() {
            known.clear();
        }
    }
}

impl<'a> Plan<'a> {
    /// A plan that makes new likes in bulk and everything else one by one, if nothing in it is unusual.
    pub(crate) fn bulk(
        keys: &'a Keys,
        seen: &Seen<'_>,
        changes: &Changes,
        listed: &Listed,
    ) -> Result<Option<Self>, StoreError> {
        let mut plan = Self::empty(keys);
        let mut groups: foldhash::HashMap<(&ObjectId, &Name), Group<'_>> = Default::default();
        let mut explained: Explained = HashMap::with_capacity_and_hasher(changes.rows.len(), RandomState::default());
        let changed: foldhash::HashSet<&Key> = changes.rows.iter().map(|(key, _)| key).collect();
        for (key, change) in &changes.rows {
            if let Some((edge, created)) = plain(key, change) {
                groups.entry((&edge.object, &edge.relation)).or_default().edges.push((edge, created));
                let (subject, relation) = (edge.subject.clone(), edge.relation.clone());
                *explained.entry(TotalKey::Subject { subject, relation }).or_insert(0) += 1;
            } else if !plan.put_numbered(key, change)? {
                plan.check(key, change.before.as_ref(), true)?;
                plan.change(key, change, &mut explained)?;
            }
        }
        for (key, row) in seen.view.seen().filter(|(key, _)| !changed.contains(key)) {
            // Nobody was ever suspended.
            if !(matches!(key, Key::Subject(_)) && row.is_none()) {
                plan.check(key, row.as_ref(), false)?;
            }
        }
        for (total, value) in seen.view.seen_totals() {
            plan.check_total(total, value);
        }
        for (place, (total, by)) in changes.adds.iter().enumerate() {
            let mut rest = by - explained.remove(total).unwrap_or(0);
            let group = match total {
                TotalKey::Object { object, relation } => groups.get_mut(&(object, relation)),
                _ => None,
            };
            match group {
                Some(group) => {
                    rest -= group.edges.len() as i64;
                    group.addition = Some(place);
                    plan.by.push(*by);
                }
                None => plan.tell(place, total, *by),
            }
            plan.add(total, rest);
        }
        plan.put_ranks(seen.view, changes.adds.len());
        plan.take_numbers(changes, changes.adds.len() + seen.view.told_ranks().len());
        let uncounted = groups.values().any(|group| group.addition.is_none());
        if uncounted || explained.values().any(|by| *by != 0) || plan.usual == Usual::Ended {
            return Ok(None);
        }
        // Single ones come first: their keys follow each other.
        let mut rest = Vec::new();
        plan.part("").singles_first = 1 + plan.part("").table.words().len();
        for ((object, relation), group) in groups {
            let list = keys.shown_pieces(Side::Object, object.as_str(), relation.as_str());
            let name = fingerprint(&list.map(str::as_bytes));
            plan.made.push(name);
            match (&group.edges[..], group.addition) {
                ([(edge, created)], Some(addition)) if listed.knows(name) => {
                    plan.make_single(&list, edge, *created, addition);
                }
                _ => rest.push((object, relation, group)),
            }
        }
        for (object, relation, group) in rest {
            for edges in group.edges.chunks(MEMBERS_MAX) {
                plan.make(object, relation, edges, group.addition);
            }
        }
        plan.usual = Usual::Needed;
        Ok(Some(plan))
    }

    /// Writes down one edge of a list that has others.
    fn make_single(&mut self, list: &[&str], edge: &EdgeKey, created: Stamp, addition: usize) {
        let keys = self.keys;
        let part = self.part("");
        part.table.append(list);
        part.table.append(&keys.shown_pieces(Side::Subject, edge.subject.as_str(), edge.relation.as_str()));
        part.singles.push(edge.object.as_str());
        push_score(&mut part.singles, created);
        part.singles.push(edge.subject.as_str());
        part.bulk_told.push(addition);
    }

    /// Writes one group down.
    fn make(&mut self, object: &ObjectId, relation: &Name, edges: &[(&EdgeKey, Stamp)], addition: Option<usize>) {
        let keys = self.keys;
        let shown = keys.shown(Side::Object, object.as_str(), relation.as_str());
        let index = self.index_of(&shown);
        self.relations.insert(relation.clone());
        let part = self.part(&shown);
        let (list, index) = (part.table.place(&shown), part.table.place(&index));
        part.groups.number(list);
        part.groups.number(index);
        part.groups.push(edges_entry(edges[0].0));
        part.groups.push(object.as_str());
        part.groups.number(edges.len());
        part.groups.number(part.table.words().len() + 1);
        for (edge, _) in edges {
            part.groups.push(edge.subject.as_str());
            part.table.append(&keys.shown_pieces(Side::Subject, edge.subject.as_str(), relation.as_str()));
        }
        for (edge, created) in edges {
            push_score(&mut part.groups, *created);
            part.groups.push(edge.subject.as_str());
        }
        part.bulk_told.extend(addition);
    }
}

/// As `rows::score` writes it.
fn push_score(words: &mut Words, created: Stamp) {
    words.digits(if created.0 == 0 { "" } else { "-" }, created.0);
}

/// An edge that is made, is shown and has nothing attached.
fn plain<'a>(key: &'a Key, change: &Change) -> Option<(&'a EdgeKey, Stamp)> {
    let (Key::Edge(key), None, Some(Row::Edge(edge))) = (key, &change.before, &change.after) else { return None };
    (!edge.hidden && !has_data(edge)).then_some((key, edge.created))
}
