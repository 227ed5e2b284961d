//! What a rule may look at: the rows that were loaded, with the batch's own changes on top.
//!
//! A rule that looks at a row that was not loaded stops with a miss. The runner loads all that
//! was missed and runs the rule again; rules are pure, so there is no second function that says
//! which rows a rule needs.
//!
//! A store that is far away is asked for as little as possible: see [`Reading::Lean`].

mod kept;
mod looks;
mod numbers;
#[cfg(test)]
mod numbers_tests;
mod outcome;
mod ranks;
#[cfg(test)]
mod tests;
mod totals;
mod wants;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::command::Cost;
use crate::error::Refusal;
use crate::rows::{Edge, EdgeKey, Key, Row, SequenceKey, TotalKey};

use kept::kept;

pub use looks::{Judged, Moment};
use looks::{Look, Trace};
use numbers::give_back;
use ranks::Ranks;
pub use wants::Wants;

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

/// A map whose hash is fast on short keys. The seed comes from outside: callers choose the ids in
/// it, and must not be able to choose how they are spread.
type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// From this many commands on, totals that are only added to are not loaded.
const LEAN_COMMANDS_MIN: usize = 256;

/// More than this at once is added to a counter only by looking at it first.
const BLIND_MAX: u64 = 1 << 40;

/// How much is loaded, and how much of it is held against the commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reading {
    /// All that a rule names, and all of it must stand: for a store where reading costs next to
    /// nothing.
    #[default]
    Whole,
    /// For a store that is far away and shared, and that gives every total back when it is added to.
    ///
    /// A total that is only added to is not loaded: it is counted from zero, and whoever shows it
    /// is corrected by what the commit gave back. And a call that wrote nothing is true as of
    /// the load, so what it looked at may have moved by the time of the commit: see [`Moment`].
    Lean,
    /// The same for a store that gives the count along with an edge that is there, so that even in a small batch
    /// nobody has to ask for it.
    Counted,
}

struct Slot<T> {
    loaded: T,
    now: T,
    state: State,
    /// Whether a decision stands on it.
    guarded: bool,
    /// Which load brought it.
    load: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Asked for and not loaded yet.
    Missing,
    /// As it was loaded.
    Loaded,
    /// A total of which only the change is known.
    Blind,
}

/// One batch's view of the store.
#[derive(Default)]
pub struct View {
    rows: Map<Key, Slot<Option<Row>>>,
    totals: Map<TotalKey, Slot<i64>>,
    ranks: Ranks,
    /// How many numbers the batch takes of each sequence.
    numbers: BTreeMap<SequenceKey, u32>,
    missing: Wants,
    reading: Reading,
    /// Whether answers must carry true totals, because they are written down.
    exact: bool,
    /// Whether counters are loaded before they are added to.
    careful: bool,
    /// What the call at hand looked at.
    looks: Vec<Look>,
    /// What the calls of this round did.
    traces: Vec<Trace>,
    /// Totals that the commit is to tell without adding to them.
    tells: BTreeSet<TotalKey>,
    /// Each load so far, and whether all of it was of one moment.
    loads: Vec<bool>,
    /// Whether the batch is so small that another load would cost more than totals that nobody needs.
    small: bool,
    /// What to put back if the command at hand is refused, newest last.
    undo: Vec<Undo>,
    cost: Cost,
}

enum Undo {
    Row(Key, Option<Row>),
    Total(TotalKey, i64),
    Number(SequenceKey),
}

/// A place in the undo list to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    undo: usize,
    cost: Cost,
}

impl View {
    /// A view with room for so many commands of the usual kind, and a seed that nobody can guess.
    pub fn new(reading: Reading, commands: usize, seed: u64) -> Self {
        let hasher = foldhash::fast::FixedState::with_seed(seed);
        Self {
            rows: Map::with_capacity_and_hasher(2 * commands, hasher.clone()),
            totals: Map::with_capacity_and_hasher(2 * commands, hasher),
            reading,
            small: reading == Reading::Lean && commands < LEAN_COMMANDS_MIN,
            ..Self::default()
        }
    }

    /// Fills in a loaded row.
    pub fn fill_row(&mut self, key: Key, row: Option<Row>) {
        let guarded = self.reading == Reading::Whole;
        let slot = Slot { loaded: row.clone(), now: row, state: State::Loaded, guarded, load: self.load() };
        self.rows.insert(key, slot);
    }

    /// Fills in a loaded total.
    pub fn fill_total(&mut self, key: TotalKey, value: i64) {
        let slot = Slot { loaded: value, now: value, state: State::Loaded, guarded: false, load: self.load() };
        self.totals.insert(key, slot);
    }

    /// The load at hand.
    fn load(&self) -> usize {
        self.loads.len().saturating_sub(1)
    }

    /// Whether the store is far away and shared.
    fn is_far(&self) -> bool {
        self.reading != Reading::Whole
    }

    /// Fills in a total that nobody asked for, of the same moment as the rows that came with it.
    pub fn offer_total(&mut self, key: TotalKey, value: i64) {
        if self.totals.get(&key).is_none_or(|slot| slot.state != State::Loaded) {
            self.fill_total(key, value);
        }
    }

    /// What was missed since the last time, each row once.
    pub fn take_missing(&mut self) -> Wants {
        if self.missing.is_empty() && self.is_far() {
            self.miss_what_is_shown_unchanged();
        }
        std::mem::take(&mut self.missing)
    }

    /// Everything that was loaded, to be loaded again as of one moment.
    pub fn loaded(&self) -> Wants {
        let rows = self.rows.keys().filter(|key| !key.is_taken()).cloned().collect();
        let totals = self.totals.iter().filter(|(_, slot)| slot.state == State::Loaded);
        let ranks = self.ranks.loaded().cloned().collect();
        Wants { rows, totals: totals.map(|(key, _)| key.clone()).collect(), ranks }
    }

    /// Notes what is to be loaded, before any rule asks for it.
    pub fn miss(&mut self, wants: &Wants) {
        wants.rows.iter().for_each(|key| _ = self.miss_row(key));
        wants.totals.iter().for_each(|key| _ = self.miss_total(key));
        wants.ranks.iter().for_each(|standing| self.miss_rank(standing));
    }

    /// Whether answers carry true totals from here on, rather than such that the commit corrects.
    /// Gives what it was before.
    pub fn set_exact(&mut self, exact: bool) -> bool {
        std::mem::replace(&mut self.exact, exact)
    }

    /// Says that a commit of the same batch was refused, so that counters are looked at before they are added to: one of
    /// them may be about to overflow.
    pub fn set_careful(&mut self) {
        self.careful = true;
    }

    /// Names every row that the rule is about to look at; stops if one is not loaded.
    pub fn want(&mut self, rows: &[Key], totals: &[TotalKey]) -> Result<(), Stop> {
        let mut loaded = true;
        for key in rows {
            loaded &= self.rows.get(key).is_some_and(|slot| slot.state == State::Loaded) || self.miss_row(key);
        }
        let whole = self.reading == Reading::Whole;
        if whole || self.exact || self.small {
            for key in totals {
                // A subject's total is shown to nobody; a limit that stands on it asks for it by itself.
                if whole || !matches!(key, TotalKey::Subject { .. }) {
                    let loaded_already = self.totals.get(key).is_some_and(|slot| slot.state == State::Loaded);
                    loaded &= loaded_already || self.miss_total(key);
                }
            }
        }
        if loaded { Ok(()) } else { Err(Stop::Miss) }
    }

    /// Whether a row is loaded. One that is not is missed, and the round is decided again when it is there; a rule that
    /// can do without it for now goes on, so that what follows it misses what it needs in the same round.
    pub fn has(&mut self, key: &Key) -> bool {
        self.rows.get(key).is_some_and(|slot| slot.state == State::Loaded) || self.miss_row(key)
    }

    /// Whether something was missed: what was decided then is to be decided again.
    pub fn misses(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Notes that a row is to be loaded, once however many ask for it. It is not there: false, unless no store can have it.
    fn miss_row(&mut self, key: &Key) -> bool {
        if self.make_room_for(key) {
            return true;
        }
        if !self.rows.contains_key(key) {
            self.rows
                .insert(key.clone(), Slot { loaded: None, now: None, state: State::Missing, guarded: true, load: 0 });
            self.missing.rows.push(key.clone());
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
        if let Some(slot) = self.rows.get(key).filter(|slot| slot.state == State::Loaded) {
            let now = slot.now.clone();
            self.look_at_row(key, now.is_some());
            return Ok(now);
        }
        if self.miss_row(key) { Ok(None) } else { Err(Stop::Miss) }
    }

    /// Reads an edge.
    pub fn edge(&mut self, key: &EdgeKey) -> Result<Option<Edge>, Stop> {
        let row = self.row(&Key::Edge(key.clone()))?;
        kept(row, Row::into_edge)
    }

    /// Puts or deletes a row: one write of the cost.
    pub fn set(&mut self, key: Key, row: Option<Row>) -> Result<(), Stop> {
        self.cost.writes += 1;
        self.set_uncounted(key, row)
    }

    /// Puts or deletes a row that is not one of the caller's records.
    pub fn set_uncounted(&mut self, key: Key, row: Option<Row>) -> Result<(), Stop> {
        let is_loaded = |slot: &&mut Slot<Option<Row>>| slot.state == State::Loaded;
        if self.rows.get_mut(&key).filter(is_loaded).is_none() && !self.miss_row(&key) {
            return Err(Stop::Miss);
        }
        let Some(slot) = self.rows.get_mut(&key) else { return Err(Stop::Miss) };
        let was = std::mem::replace(&mut slot.now, row);
        self.ranks.moved(&key, slot.loaded.as_ref(), slot.now.as_ref());
        self.undo.push(Undo::Row(key, was));
        Ok(())
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
                        self.ranks.moved(&key, slot.loaded.as_ref(), slot.now.as_ref());
                    }
                }
                Undo::Total(key, was) => {
                    if let Some(slot) = self.totals.get_mut(&key) {
                        slot.now = was;
                    }
                }
                Undo::Number(sequence) => give_back(&mut self.numbers, &sequence),
            }
        }
        self.cost = to.cost;
    }

    /// Ends a call, `answered` or refused.
    pub fn end_command(&mut self, from: Savepoint, answered: bool) {
        self.end_trace(self.undo.len() > from.undo, answered);
    }

    /// Ends a call that is to be decided again, or was not decided at all.
    pub fn forget_command(&mut self) {
        self.looks.clear();
    }

    /// What was read and written since the savepoint.
    pub fn cost_since(&self, from: Savepoint) -> Cost {
        Cost { reads: self.cost.reads - from.cost.reads, writes: self.cost.writes - from.cost.writes }
    }
}
