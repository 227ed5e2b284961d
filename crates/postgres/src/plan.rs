//! What a commit writes and checks, laid out as arrays in the order in which it takes its locks.
//!
//! Fences first, then the small tables, then edges: new ones, then those that are changed or must
//! stand; then totals, then turns, then the trees of orders, then sequences. Within each, by key. Everybody goes the same way, so nobody waits in a circle.

use std::collections::{BTreeMap, BTreeSet};

use tally_core::ObjectId;
use tally_core::rows::{Cell, Changes, Edge, EdgeKey, Guard, Job, Key, Row, RowKind, TotalKey, Work};
use tally_engine::{Seen, StoreError};

use crate::cells::{Cells, Table, table_of, tables};
use crate::edges::{Edges, Keys};
use crate::fence::{Fences, turn_of_order};
use crate::numbers::Numbers;
use crate::points::{Asked, Moves};
use crate::rows::{self, key_cells};
use crate::spread::Spread;
use crate::totals::{ObjectTotals, SubjectTotals};

/// More than this at once goes to the first shard, where an overflow is seen.
const SHARD_BY_MAX: u64 = 1 << 40;

/// A commit, ready to be sent.
#[derive(Default)]
pub(crate) struct Plan<'a> {
    pub(crate) fences: Fences,
    pub(crate) tables: [TableWork; RowKind::COUNT],
    pub(crate) new: Edges<'a>,
    /// Edges as they must still be.
    pub(crate) held: Edges<'a>,
    pub(crate) changed: Edges<'a>,
    pub(crate) gone: Keys<'a>,
    /// Totals as they must still be, other than those of subjects; with all others that are added to, so that they are
    /// locked in one order.
    pub(crate) held_totals: ObjectTotals<'a>,
    /// Those of them that have one row.
    pub(crate) locked_totals: ObjectTotals<'a>,
    pub(crate) objects: ObjectTotals<'a>,
    pub(crate) object_places: Vec<usize>,
    pub(crate) shards: ObjectTotals<'a>,
    pub(crate) shard_places: Vec<usize>,
    /// What is added to the trees of orders.
    pub(crate) nodes: Moves,
    pub(crate) numbers: Numbers<'a>,
    /// Ranks that are told or checked.
    pub(crate) ranks: Asked<'a>,
    pub(crate) subjects: SubjectTotals<'a>,
    /// Subjects whose row goes.
    pub(crate) ended_subjects: Vec<&'a str>,
    /// Objects that a job named, and names no more.
    pub(crate) ended_objects: Vec<&'a str>,
    pub(crate) subject_places: Vec<Option<usize>>,
    /// Totals of subjects that this commit changes by more than its edges account for.
    pub(crate) unexplained: SubjectTotals<'a>,
}

/// What a commit does in one of the small tables.
#[derive(Default)]
pub(crate) struct TableWork {
    pub(crate) absent: Vec<Cells>,
    /// The keys of all that are held, changed or gone.
    locked: Vec<Cells>,
    pub(crate) held: Vec<Cells>,
    pub(crate) changed: Vec<Cells>,
    pub(crate) gone: Vec<Cells>,
    pub(crate) new: Vec<Cells>,
    /// New rows that carry numbers, and rows that were changed and carry some.
    pub(crate) new_numbered: Vec<Cells>,
    pub(crate) changed_numbered: Vec<Cells>,
}

impl TableWork {
    /// Rows to lock before anything else, so that they are locked in one order. A single statement has it anyway.
    pub(crate) fn locked(&self) -> &[Cells] {
        let kinds = [&self.held, &self.changed, &self.gone].iter().filter(|rows| !rows.is_empty()).count();
        if kinds > 1 { &self.locked } else { &[] }
    }
}

impl<'a> Plan<'a> {
    pub(crate) fn new(seen: &Seen<'a>, changes: &'a Changes, spread: &Spread) -> Result<Self, StoreError> {
        changes.check_numbers()?;
        let mut plan = Self { numbers: Numbers::new(changes), ..Self::default() };
        plan.put_rows(seen, changes)?;
        plan.put_totals(seen, changes, spread);
        plan.nodes = Moves::new(changes);
        plan.nodes.orders().keys().for_each(|order| plan.fences.count_on(order));
        plan.ranks = Asked::shown(seen.view, changes);
        Ok(plan)
    }

    /// The turns that it takes, behind all rows and in one order: of totals that are spread, and of orders. Who only looks at
    /// an order shares its turn.
    pub(crate) fn turns(&self) -> (Vec<i32>, Vec<bool>) {
        let mut turns: BTreeMap<i32, bool> = self.ranks.names().map(|order| (turn_of_order(order), false)).collect();
        turns.extend(self.nodes.orders().keys().map(|order| (turn_of_order(order), true)));
        turns.extend(self.shards.turns().map(|turn| (turn, true)));
        turns.into_iter().unzip()
    }

    /// The statements for rows that carry numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (Table, &[Cells], fn(Table) -> String)> {
        let of = |(kind, table): (RowKind, Table)| {
            let work = &self.tables[kind as usize];
            [
                (table, work.new_numbered.as_slice(), Table::insert_numbered as fn(Table) -> String),
                (table, work.changed_numbered.as_slice(), Table::change_numbered),
            ]
        };
        tables().flat_map(of).filter(|(_, rows, _)| !rows.is_empty())
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
            if let (Key::Subject(subject), None, true) = (key, after, is_changed) {
                self.ended_subjects.push(subject.as_str());
            }
            if let (Some(object), None, true) = (named_object(before), named_object(after), is_changed) {
                self.ended_objects.push(object.as_str());
            }
            if let Key::Edge(edge) = key {
                self.put_edge(edge, before.and_then(Row::edge), after.and_then(Row::edge), is_changed)?;
                continue;
            }
            let carries = |row: &&Row| is_changed && (key.is_taken() || row.is_taken());
            match (after.filter(carries), changes.taken_of(key)) {
                (Some(after), Some((_, count))) => self.put_numbered(key, before, after, count)?,
                (Some(_) | None, _) => self.put_cells(key, before, after, is_changed)?,
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
        let kind = key.kind();
        let Some(columns) = table_of(kind) else { return Ok(()) };
        self.guard(key, before.is_some(), is_changed);
        let table = &mut self.tables[kind as usize];
        if before.is_some() {
            table.locked.push(key_cells(key));
        }
        match (is_changed, before, after) {
            (false, None, _) => table.absent.push(key_cells(key)),
            (false, Some(before), _) => table.held.push(rows::write(key, before)?),
            (true, Some(before), Some(after)) => {
                let mut cells = rows::write(key, before)?;
                cells.extend(rows::write(key, after)?.into_iter().skip(columns.keys()));
                table.changed.push(cells);
            }
            (true, Some(before), None) => table.gone.push(rows::write(key, before)?),
            (true, None, Some(after)) => {
                let mut cells = rows::write(key, after)?;
                if columns.has_partitions() {
                    cells.push(Some(key.partition().to_string()));
                }
                table.new.push(cells);
            }
            (true, None, None) => {}
        }
        Ok(())
    }

    fn guard(&mut self, key: &Key, was_there: bool, is_changed: bool) {
        match (key.kind().declared().guard, is_changed, was_there) {
            // Who looks shares a fence, who changes holds it alone.
            (Guard::Changed, true, _) => self.fences.change(key),
            (Guard::Changed, false, _) => self.fences.look_at(key),
            // Who makes a row shares a fence, who decided on an absence and left it holds it alone.
            (Guard::Absent, true, false) => self.fences.look_at(key),
            (Guard::Absent, false, false) => self.fences.change(key),
            (Guard::Absent, _, true) | (Guard::Key, _, _) => {}
        }
    }

    /// A row that carries numbers that are taken behind all locks. One that is there is changed before that, and given its numbers
    /// then; a new one is put then. Nobody stands on the absence of a key whose number was never given.
    fn put_numbered(&mut self, key: &Key, before: Option<&Row>, after: &Row, count: u32) -> Result<(), StoreError> {
        if !key.is_taken() {
            self.guard(key, before.is_some(), true);
        }
        let mut cells = rows::write_numbered(key, after, count)?;
        if table_of(key.kind()).is_some_and(Table::has_partitions) {
            cells.push(Some(key.partition().to_string()));
        }
        let table = &mut self.tables[key.kind() as usize];
        match before {
            None => table.new_numbered.push(cells),
            Some(before) => {
                let mut change = rows::write(key, before)?;
                let columns = after.to_cells();
                for (cell, text) in columns.iter().zip(cells.iter().skip(key.to_cells().len())) {
                    change.push(if matches!(cell, Cell::Taken(_)) { Some("0".into()) } else { text.clone() });
                }
                table.locked.push(key_cells(key));
                table.changed.push(change);
                table.changed_numbered.push(cells);
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
        let is_held = |(key, (_, expected, _)): (&&TotalKey, &(i64, Option<i64>, Option<usize>))| {
            expected.is_some() && !matches!(key, TotalKey::Subject { .. })
        };
        let holds = work.iter().any(is_held);
        for (key, (by, expected, place)) in work {
            let shard = spread.shard(key);
            if holds && !matches!(key, TotalKey::Subject { .. }) {
                self.held_totals.push_held(key, expected);
                if shard.is_none() {
                    self.locked_totals.push(key, 0);
                }
            }
            match (key, place) {
                (TotalKey::Subject { subject, relation }, place) => {
                    self.fences.add_to(subject);
                    if expected.is_none() && explained.get(key).copied().unwrap_or(0) != by {
                        self.unexplained.push(subject, relation, by, None);
                    }
                    self.subjects.push(subject, relation, by, expected);
                    self.subject_places.push(place);
                }
                (_, Some(place)) => match shard {
                    Some(shard) => {
                        let shard = if by.unsigned_abs() <= SHARD_BY_MAX { shard } else { 0 };
                        self.shards.push_to_shard(key, shard, by);
                        self.shard_places.push(place);
                    }
                    None => {
                        self.objects.push(key, by);
                        self.object_places.push(place);
                    }
                },
                // Held already, and nothing is added.
                (_, None) => {}
            }
        }
    }
}

/// What the edges of a commit add to their subjects' totals.
fn explained(changes: &Changes) -> BTreeMap<TotalKey, i64> {
    let mut sums = BTreeMap::new();
    let mut add = |key: &EdgeKey, row: Option<&Row>, by: i64| {
        if let Some(edge) = row.and_then(Row::edge) {
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

/// The object that a job is about, as long as it says so.
fn named_object(row: Option<&Row>) -> Option<&ObjectId> {
    if let Some(Row::Job(Job { work: Work::Clear { object }, .. })) = row { Some(object) } else { None }
}
