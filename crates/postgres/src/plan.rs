//! What a commit writes and checks, laid out as arrays in the order in which it takes its locks.
//!
//! Fences first, then the small tables, then edges: new ones, then those that are changed or must
//! stand; then totals. Within each, by key. Everybody goes the same way, so nobody waits in a circle.

use std::collections::{BTreeMap, BTreeSet};

use tally_core::rows::{Changes, Edge, EdgeKey, Key, Row, TotalKey};
use tally_engine::{Seen, StoreError};

use crate::cells::{self, Cells, TABLES, key_cells, table_of};
use crate::edges::{Edges, Keys};
use crate::fence::Fences;
use crate::spread::Spread;
use crate::totals::{ObjectTotals, SubjectTotals};

/// A commit, ready to be sent.
#[derive(Default)]
pub(crate) struct Plan<'a> {
    pub(crate) fences: Fences,
    pub(crate) tables: [TableWork; TABLES.len()],
    pub(crate) new: Edges<'a>,
    /// Edges as they must still be.
    pub(crate) held: Edges<'a>,
    pub(crate) changed: Edges<'a>,
    pub(crate) gone: Keys<'a>,
    pub(crate) objects: ObjectTotals<'a>,
    pub(crate) object_places: Vec<usize>,
    pub(crate) shards: ObjectTotals<'a>,
    pub(crate) shard_places: Vec<usize>,
    pub(crate) subjects: SubjectTotals<'a>,
    pub(crate) subject_places: Vec<Option<usize>>,
    /// Totals of subjects that this commit changes by more than its edges account for.
    pub(crate) unexplained: SubjectTotals<'a>,
}

/// What a commit does in one of the small tables.
#[derive(Default)]
pub(crate) struct TableWork {
    pub(crate) absent: Vec<Cells>,
    pub(crate) held: Vec<Cells>,
    pub(crate) gone: Vec<Cells>,
    pub(crate) new: Vec<Cells>,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(seen: &Seen<'a>, changes: &'a Changes, spread: &Spread) -> Result<Self, StoreError> {
        let mut plan = Self::default();
        plan.put_rows(seen, changes)?;
        plan.put_totals(seen, changes, spread);
        Ok(plan)
    }

    fn put_rows(&mut self, seen: &Seen<'a>, changes: &'a Changes) -> Result<(), StoreError> {
        let mut work: BTreeMap<&Key, (Option<&Row>, Option<&Row>, bool)> = BTreeMap::new();
        for (key, row) in seen.view.seen() {
            work.insert(key, (row.as_ref(), row.as_ref(), false));
        }
        for (key, change) in &changes.rows {
            work.insert(key, (change.before.as_ref(), change.after.as_ref(), true));
        }
        for (key, (before, after, is_changed)) in work {
            match key {
                Key::Edge(edge) => {
                    self.put_edge(edge, before.and_then(as_edge), after.and_then(as_edge), is_changed)?
                }
                _ => self.put_cells(key, before, after, is_changed)?,
            }
        }
        Ok(())
    }

    fn put_edge(
        &mut self,
        key: &'a EdgeKey,
        before: Option<&'a Edge>,
        after: Option<&'a Edge>,
        is_changed: bool,
    ) -> Result<(), StoreError> {
        match (before, after) {
            (None, Some(after)) => return self.new.push(key, after),
            (None, None) => {
                // Taken until the commit, and then free again: nobody can have put it meanwhile.
                self.new.push_placeholder(key);
                self.gone.push(key);
                return Ok(());
            }
            (Some(before), _) => self.held.push(key, before)?,
        }
        match after {
            Some(after) if is_changed => self.changed.push(key, after)?,
            Some(_) => {}
            None => self.gone.push(key),
        }
        Ok(())
    }

    fn put_cells(
        &mut self,
        key: &Key,
        before: Option<&Row>,
        after: Option<&Row>,
        is_changed: bool,
    ) -> Result<(), StoreError> {
        let Some(number) = table_of(key) else { return Ok(()) };
        let table = &mut self.tables[number];
        match (TABLES[number].fenced, is_changed) {
            (true, true) => self.fences.change(key),
            (true, false) => self.fences.look_at(key),
            (false, _) => {}
        }
        match (is_changed, before) {
            (false, None) => table.absent.push(key_cells(key)),
            (false, Some(before)) => table.held.push(cells::write(key, before)?),
            (true, before) => {
                if let Some(before) = before {
                    table.gone.push(cells::write(key, before)?);
                }
                if let Some(after) = after {
                    table.new.push(cells::write(key, after)?);
                }
            }
        }
        Ok(())
    }

    fn put_totals(&mut self, seen: &Seen<'a>, changes: &'a Changes, spread: &Spread) {
        let mut work: BTreeMap<&TotalKey, (i64, Option<i64>, Option<usize>)> = BTreeMap::new();
        for (place, (key, by)) in changes.adds.iter().enumerate() {
            work.insert(key, (*by, None, Some(place)));
        }
        for (key, value) in seen.view.seen_totals() {
            work.entry(key).or_insert((0, None, None)).1 = Some(value);
        }
        let explained = explained(changes);
        for (key, (by, expected, place)) in work {
            match (key, place) {
                (TotalKey::Subject { subject, relation }, place) => {
                    self.fences.add_to(subject);
                    if expected.is_none() && explained.get(key).copied().unwrap_or(0) != by {
                        self.unexplained.push(subject, relation, by, None);
                    }
                    self.subjects.push(subject, relation, by, expected);
                    self.subject_places.push(place);
                }
                (_, Some(place)) => match spread.shard(key) {
                    Some(shard) => {
                        self.shards.push_to_shard(key, shard, by);
                        self.shard_places.push(place);
                    }
                    None => {
                        self.objects.push(key, by);
                        self.object_places.push(place);
                    }
                },
                // No rule decides on an object's total; adding nothing to it would guard it no better.
                (_, None) => {}
            }
        }
    }
}

/// What the edges of a commit add to their subjects' totals.
fn explained(changes: &Changes) -> BTreeMap<TotalKey, i64> {
    let mut sums = BTreeMap::new();
    let mut add = |key: &EdgeKey, row: Option<&Row>, by: i64| {
        if let Some(edge) = row.and_then(as_edge) {
            for total in key.totals(edge).filter(|total| matches!(total, TotalKey::Subject { .. })) {
                *sums.entry(total).or_insert(0) += by;
            }
        }
    };
    for (key, change) in &changes.rows {
        if let Key::Edge(key) = key {
            add(key, change.before.as_ref(), -1);
            add(key, change.after.as_ref(), 1);
        }
    }
    sums
}

/// The subjects of totals, each once.
pub(crate) fn distinct<'a>(totals: &SubjectTotals<'a>) -> BTreeSet<&'a str> {
    totals.subjects().iter().copied().collect()
}

fn as_edge(row: &Row) -> Option<&Edge> {
    if let Row::Edge(edge) = row { Some(edge) } else { None }
}
