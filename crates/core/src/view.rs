//! What a rule may look at: the rows that were loaded, with the batch's own changes on top.
//!
//! A rule that looks at a row that was not loaded stops with a miss. The runner loads all that
//! was missed and runs the rule again; rules are pure, so there is no second function that says
//! which rows a rule needs.

use std::collections::HashMap;

use crate::command::Cost;
use crate::error::Refusal;
use crate::rows::{Change, Changes, Edge, EdgeKey, Key, Row, TotalKey};
use crate::time::Stamp;

/// Why a rule did not answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// It looked at rows that are not loaded; the view knows which.
    Miss,
    /// It said no.
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Rows and totals to load.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wants {
    /// Rows.
    pub rows: Vec<Key>,
    /// Totals.
    pub totals: Vec<TotalKey>,
}

impl Wants {
    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.totals.is_empty()
    }
}

/// A map whose hash is fast on short keys. The seed comes from outside: callers choose the ids in
/// it, and must not be able to choose how they are spread.
type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

struct Slot<T> {
    loaded: T,
    now: T,
    /// Whether it has been asked for and not loaded yet.
    missing: bool,
    /// Whether a decision stands on it. Rows always count as such.
    guarded: bool,
}

/// One batch's view of the store.
#[derive(Default)]
pub struct View {
    rows: Map<Key, Slot<Option<Row>>>,
    totals: Map<TotalKey, Slot<i64>>,
    missing: Wants,
    /// What to put back if the command at hand is refused, newest last.
    undo: Vec<Undo>,
    cost: Cost,
}

enum Undo {
    Row(Key, Option<Row>),
    Total(TotalKey, i64),
}

/// A place in the undo list to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    undo: usize,
    cost: Cost,
}

impl View {
    /// A view with room for so many commands of the usual kind, and a seed that nobody can guess.
    pub fn new(commands: usize, seed: u64) -> Self {
        let hasher = foldhash::fast::FixedState::with_seed(seed);
        Self {
            rows: Map::with_capacity_and_hasher(2 * commands, hasher.clone()),
            totals: Map::with_capacity_and_hasher(2 * commands, hasher),
            ..Self::default()
        }
    }

    /// Fills in a loaded row.
    pub fn fill_row(&mut self, key: Key, row: Option<Row>) {
        self.rows.insert(key, Slot { loaded: row.clone(), now: row, missing: false, guarded: true });
    }

    /// Fills in a loaded total.
    pub fn fill_total(&mut self, key: TotalKey, value: i64) {
        self.totals.insert(key, Slot { loaded: value, now: value, missing: false, guarded: false });
    }

    /// What was missed since the last time, each row once.
    pub fn take_missing(&mut self) -> Wants {
        std::mem::take(&mut self.missing)
    }

    /// Names every row that the rule is about to look at; stops if one is not loaded.
    pub fn want(&mut self, rows: &[Key], totals: &[TotalKey]) -> Result<(), Stop> {
        let mut loaded = true;
        for key in rows {
            loaded &= self.rows.get(key).is_some_and(|slot| !slot.missing) || self.miss_row(key);
        }
        for key in totals {
            loaded &= self.totals.get(key).is_some_and(|slot| !slot.missing) || self.miss_total(key);
        }
        if loaded { Ok(()) } else { Err(Stop::Miss) }
    }

    /// Notes that a row is to be loaded, once however many ask for it. It is not there: false.
    fn miss_row(&mut self, key: &Key) -> bool {
        if !self.rows.contains_key(key) {
            self.rows.insert(key.clone(), Slot { loaded: None, now: None, missing: true, guarded: true });
            self.missing.rows.push(key.clone());
        }
        false
    }

    fn miss_total(&mut self, key: &TotalKey) -> bool {
        if !self.totals.contains_key(key) {
            self.totals.insert(key.clone(), Slot { loaded: 0, now: 0, missing: true, guarded: false });
            self.missing.totals.push(key.clone());
        }
        false
    }

    /// Reads a row: one read of the cost.
    pub fn row(&mut self, key: &Key) -> Result<Option<Row>, Stop> {
        self.cost.reads += 1;
        self.row_uncounted(key)
    }

    /// Reads a row that is not one of the caller's records (a suspension, a remembered answer),
    /// which the cost therefore leaves out.
    pub fn row_uncounted(&mut self, key: &Key) -> Result<Option<Row>, Stop> {
        match self.rows.get(key) {
            Some(slot) if !slot.missing => Ok(slot.now.clone()),
            _ => {
                self.miss_row(key);
                Err(Stop::Miss)
            }
        }
    }

    /// Reads an edge.
    pub fn edge(&mut self, key: &EdgeKey) -> Result<Option<Edge>, Stop> {
        match self.row(&Key::Edge(key.clone()))? {
            Some(Row::Edge(edge)) => Ok(Some(edge)),
            None => Ok(None),
            Some(_) => Err(Refusal::Broken("an edge's key holds another row".into()).into()),
        }
    }

    /// Shows a total without deciding on it: the answer's count, at no cost.
    pub fn total(&mut self, key: &TotalKey) -> Result<i64, Stop> {
        match self.totals.get(key) {
            Some(slot) if !slot.missing => Ok(slot.now),
            _ => {
                self.miss_total(key);
                Err(Stop::Miss)
            }
        }
    }

    /// Reads a total that the decision stands on: if it moves before the commit, that is a conflict.
    pub fn total_decided(&mut self, key: &TotalKey) -> Result<i64, Stop> {
        let value = self.total(key)?;
        if let Some(slot) = self.totals.get_mut(key) {
            slot.guarded = true;
        }
        Ok(value)
    }

    /// Puts or deletes a row: one write of the cost.
    pub fn set(&mut self, key: Key, row: Option<Row>) -> Result<(), Stop> {
        self.cost.writes += 1;
        self.set_uncounted(key, row)
    }

    /// Puts or deletes a row that is not one of the caller's records.
    pub fn set_uncounted(&mut self, key: Key, row: Option<Row>) -> Result<(), Stop> {
        let Some(slot) = self.rows.get_mut(&key).filter(|slot| !slot.missing) else {
            self.miss_row(&key);
            return Err(Stop::Miss);
        };
        let was = std::mem::replace(&mut slot.now, row);
        self.undo.push(Undo::Row(key, was));
        Ok(())
    }

    /// Adds to a total, and gives it as it is afterwards. Nothing ever clamps: a total that would
    /// fall below zero is a defect, and is refused loudly.
    pub fn add(&mut self, key: &TotalKey, by: i64) -> Result<i64, Stop> {
        let Some(slot) = self.totals.get_mut(key).filter(|slot| !slot.missing) else {
            self.miss_total(key);
            return Err(Stop::Miss);
        };
        let after = slot.now.checked_add(by).filter(|after| *after >= 0 || by > 0);
        let Some(after) = after else {
            return Err(Refusal::Broken(format!("{key:?} would become {}{by:+}", slot.now)).into());
        };
        self.undo.push(Undo::Total(key.clone(), slot.now));
        slot.now = after;
        Ok(after)
    }

    /// Counts a parent's total into the cost: it was read and written for the caller.
    pub fn charge_total(&mut self) {
        self.cost.reads += 1;
        self.cost.writes += 1;
    }

    /// Marks where the next command begins.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { undo: self.undo.len(), cost: self.cost }
    }

    /// Takes back everything since the savepoint.
    pub fn rollback(&mut self, to: Savepoint) {
        for undo in self.undo.drain(to.undo..).rev() {
            match undo {
                Undo::Row(key, was) => {
                    if let Some(slot) = self.rows.get_mut(&key) {
                        slot.now = was;
                    }
                }
                Undo::Total(key, was) => {
                    if let Some(slot) = self.totals.get_mut(&key) {
                        slot.now = was;
                    }
                }
            }
        }
        self.cost = to.cost;
    }

    /// What was read and written since the savepoint.
    pub fn cost_since(&self, from: Savepoint) -> Cost {
        Cost { reads: self.cost.reads - from.cost.reads, writes: self.cost.writes - from.cost.writes }
    }

    /// The batch's changes: only what really differs from what was loaded.
    pub fn changes(&self, stamp: Stamp) -> Changes {
        let rows = self
            .rows
            .iter()
            .filter(|(_, slot)| slot.loaded != slot.now)
            .map(|(key, slot)| (key.clone(), Change { before: slot.loaded.clone(), after: slot.now.clone() }))
            .collect();
        let adds = self
            .totals
            .iter()
            .filter(|(_, slot)| slot.loaded != slot.now)
            .map(|(key, slot)| (key.clone(), slot.now - slot.loaded))
            .collect();
        Changes { rows, adds, stamp }
    }

    /// Every row that was loaded, as it was: what the decisions stand on.
    pub fn seen(&self) -> impl Iterator<Item = (&Key, &Option<Row>)> {
        self.rows.iter().map(|(key, slot)| (key, &slot.loaded))
    }

    /// Every total that a decision stands on, as it was.
    pub fn seen_totals(&self) -> impl Iterator<Item = (&TotalKey, i64)> {
        self.totals.iter().filter(|(_, slot)| slot.guarded).map(|(key, slot)| (key, slot.loaded))
    }

    /// A total after the whole batch.
    pub fn final_total(&self, key: &TotalKey) -> Option<i64> {
        self.totals.get(key).map(|slot| slot.now)
    }
}
