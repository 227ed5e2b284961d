//! What each call of a batch looked at and showed, and so at which moment its answer is true.
//!
//! Every answer must have been possible at one moment. There are two such moments to choose from:
//! - **the load**: a call that wrote nothing, and saw nothing that the batch wrote, is answered with what was loaded,
//!   if all of it was loaded at one moment;
//! - **the commit**: whatever else is answered stands on rows that the commit checks, and shows totals and ranks that it
//!   tells.
//!
//! Where neither holds the batch is *torn*, and is to be decided again on one load.

use super::{Slot, State, View};
use crate::rows::{Key, Row, Standing, TotalKey};

/// One thing that a call looked at.
#[derive(Clone, Debug)]
pub(super) enum Look {
    Row(Key),
    /// A total in the answer, and what it was before the call.
    Shown(TotalKey, i64),
    /// A total that was decided on.
    Decided(TotalKey),
    /// A rank in the answer, the next one of it.
    Rank(Standing),
}

/// What one call did.
#[derive(Default, Debug)]
pub(super) struct Trace {
    /// Whether it wrote, or saw what the batch wrote before it.
    is_tied: bool,
    looks: Vec<Look>,
}

/// When a call's answer is true.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Moment {
    /// At the commit, with the totals and ranks that it tells: the answer shows these ranks, in this order.
    Commit(Vec<Standing>),
    /// When its rows were loaded: the totals that it shows are off by this much.
    Load(Vec<(TotalKey, i64)>),
}

/// What is known of a batch that was decided.
#[derive(Default, Debug)]
pub struct Judged {
    /// A moment for every call, in their order.
    pub moments: Vec<Moment>,
    /// What was loaded at several moments was answered as if it were of one: decide again, on one load.
    pub is_torn: bool,
    /// The commit has something to check, even if it has nothing to write.
    pub needs_commit: bool,
}

impl View {
    /// Says that what is filled in from here on is of another moment; `at_once` if all of it is of one.
    pub fn begin_load(&mut self, at_once: bool) {
        self.loads.push(at_once);
    }

    /// Says that all calls are decided again.
    pub fn begin_round(&mut self) {
        self.traces.clear();
        self.looks.clear();
    }

    pub(super) fn look(&mut self, look: Look) {
        if self.is_far() {
            self.looks.push(look);
        }
    }

    /// Ends a call. What it showed matters only if it was `answered` and not refused.
    pub(super) fn end_trace(&mut self, wrote: bool, answered: bool) {
        if !self.is_far() {
            return;
        }
        let mut looks = std::mem::take(&mut self.looks);
        if !answered {
            looks.retain(|look| !matches!(look, Look::Shown(..) | Look::Rank(_)));
        }
        // Whoever wrote nothing may have rehearsed: what it added for that is taken back by now, and stays in the answer.
        for look in &mut looks {
            if let Look::Shown(key, before) = look {
                *before = self.totals.get(key).map_or(0, |slot| slot.now);
            }
        }
        let is_tied = wrote || looks.iter().any(|look| self.saw_a_change(look));
        self.traces.push(Trace { is_tied, looks });
    }

    /// Ends a call that has no decision of its own: it panicked.
    pub fn end_without_trace(&mut self) {
        self.looks.clear();
        if self.is_far() {
            self.traces.push(Trace::default());
        }
    }

    /// How many calls were ended in this round.
    pub fn calls(&self) -> usize {
        self.traces.len()
    }

    fn saw_a_change(&self, look: &Look) -> bool {
        match look {
            Look::Row(key) => self.rows.get(key).is_some_and(|slot| slot.loaded != slot.now),
            Look::Decided(key) => self.totals.get(key).is_some_and(|slot| slot.loaded != slot.now),
            // It can be shown as it was.
            Look::Shown(..) => false,
            Look::Rank(standing) => self.has_moved(standing),
        }
    }

    /// Whether the calls were answered as of the load, or as of the commit. What the commit has to check and to tell is
    /// noted.
    pub fn judge(&mut self) -> Judged {
        let mut judged = Judged::default();
        if !self.is_far() {
            return judged;
        }
        let writes = self.writes();
        // Loading it all again brings one moment, unless the store has none.
        let can_load_at_once = self.loads.iter().all(|at_once| *at_once);
        let of_one_load = self.loads.len() < 2 && can_load_at_once;
        let traces = std::mem::take(&mut self.traces);
        for trace in &traces {
            let is_whole = trace.looks.iter().all(|look| self.load_of(look).is_some())
                && (of_one_load || self.is_of_one_moment(&trace.looks));
            let moment = match (trace.is_tied, is_whole) {
                (false, true) => Moment::Load(self.off_since_load(&trace.looks)),
                // What was written was taken back within the batch: nothing reaches the store, and what came in between
                // stands on the load.
                (true, true) if !writes && of_one_load => Moment::Load(Vec::new()),
                (false, false) if !writes && can_load_at_once => {
                    judged.is_torn = true;
                    Moment::Commit(Vec::new())
                }
                (true, _) | (false, false) => {
                    judged.needs_commit |= !writes;
                    self.put_off_to_commit(&trace.looks)
                }
            };
            judged.moments.push(moment);
        }
        self.traces = traces;
        judged
    }

    /// What the totals in an answer are off by, as of the load.
    fn off_since_load(&self, looks: &[Look]) -> Vec<(TotalKey, i64)> {
        let off = |look: &Look| match look {
            Look::Shown(key, before) => {
                let off = self.totals.get(key)?.loaded.checked_sub(*before).filter(|off| *off != 0)?;
                Some((key.clone(), off))
            }
            Look::Row(_) | Look::Decided(_) | Look::Rank(_) => None,
        };
        let mut found: Vec<(TotalKey, i64)> = Vec::new();
        for (key, off) in looks.iter().filter_map(off) {
            if !found.iter().any(|(known, _)| *known == key) {
                found.push((key, off));
            }
        }
        found
    }

    /// The commit checks what was looked at, and tells what was shown.
    fn put_off_to_commit(&mut self, looks: &[Look]) -> Moment {
        let mut ranks = Vec::new();
        for look in looks {
            match look {
                Look::Row(key) => {
                    // One whose number is not given yet is this batch's own.
                    if let Some(slot) = self.rows.get_mut(key).filter(|_| !key.is_taken()) {
                        slot.guarded = true;
                    }
                }
                Look::Decided(key) => {
                    if let Some(slot) = self.totals.get_mut(key) {
                        slot.guarded = true;
                    }
                }
                Look::Shown(key, _) => {
                    if self.totals.get(key).is_some_and(|slot| slot.loaded == slot.now && !slot.guarded) {
                        self.tells.insert(key.clone());
                    }
                }
                Look::Rank(standing) => {
                    let told = self.told_as(standing);
                    self.tell_rank(&told);
                    ranks.push(told);
                }
            }
        }
        Moment::Commit(ranks)
    }

    /// Whether all that a call looked at was loaded at one moment. One thing always was.
    fn is_of_one_moment(&self, looks: &[Look]) -> bool {
        let mut first: Option<&Look> = None;
        for look in looks {
            match first {
                None => first = Some(look),
                Some(first) if first.is_same(look) => {}
                Some(first) => {
                    let load = self.load_of(first);
                    if load != self.load_of(look) || load.is_none_or(|load| self.loads.get(load) != Some(&true)) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// The load that brought it.
    fn load_of(&self, look: &Look) -> Option<usize> {
        fn of<T>(slot: Option<&Slot<T>>) -> Option<usize> {
            slot.filter(|slot| slot.state == State::Loaded).map(|slot| slot.load)
        }
        match look {
            Look::Row(key) => of(self.rows.get(key)),
            Look::Shown(key, _) | Look::Decided(key) => of(self.totals.get(key)),
            Look::Rank(standing) => self.rank_load(standing),
        }
    }

    /// An answer carries a total that was never loaded, and the batch as a whole does not add to it, or a rank, and nothing
    /// is committed: nobody will tell. It is loaded, together with what the same call looked at, so that both are of one
    /// moment.
    pub(super) fn miss_what_is_shown_unchanged(&mut self) {
        let traces = std::mem::take(&mut self.traces);
        let writes = self.writes();
        // The commit tells what is shown by who wrote.
        for trace in traces.iter().filter(|trace| !trace.is_tied) {
            let is_unknown = |look: &Look| match look {
                Look::Shown(key, _) => {
                    self.totals.get(key).is_some_and(|slot| slot.state == State::Blind && slot.loaded == slot.now)
                }
                Look::Rank(standing) => !writes && self.rank_load(standing).is_none(),
                Look::Row(_) | Look::Decided(_) => false,
            };
            if trace.looks.iter().any(is_unknown) {
                trace.looks.iter().for_each(|look| self.miss_again(look));
            }
        }
        self.traces = traces;
    }

    /// Whether the batch as a whole changes anything.
    fn writes(&self) -> bool {
        self.rows.values().any(|slot| slot.loaded != slot.now)
            || self.totals.values().any(|slot| slot.loaded != slot.now)
            || !self.numbers.is_empty()
    }

    /// Loads it once more.
    fn miss_again(&mut self, look: &Look) {
        match look {
            Look::Row(key) => {
                // No store has one whose number is not given yet.
                let may_load = |slot: &&mut Slot<Option<Row>>| slot.state != State::Missing && !key.is_taken();
                if let Some(slot) = self.rows.get_mut(key).filter(may_load) {
                    slot.state = State::Missing;
                    self.missing.rows.push(key.clone());
                }
            }
            Look::Shown(key, _) | Look::Decided(key) => {
                // One that the batch adds to is told by the commit.
                if let Some(slot) = self.totals.get_mut(key).filter(|slot| slot.state != State::Missing) {
                    slot.state = State::Missing;
                    self.missing.totals.push(key.clone());
                }
            }
            Look::Rank(standing) => self.miss_rank(standing),
        }
    }
}

impl Look {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Row(one), Self::Row(other)) => one == other,
            (Self::Shown(one, _) | Self::Decided(one), Self::Shown(other, _) | Self::Decided(other)) => one == other,
            (Self::Rank(one), Self::Rank(other)) => one == other,
            (Self::Row(_) | Self::Shown(..) | Self::Decided(_) | Self::Rank(_), _) => false,
        }
    }
}
