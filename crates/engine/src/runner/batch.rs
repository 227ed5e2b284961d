//! One batch: stamp, load, decide, commit; again on a conflict; in halves if it keeps conflicting.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tally_core::command::{Call, Cost, Decided};
use tally_core::decide::decide;
use tally_core::reply::Told;
use tally_core::rows::{Changes, SequenceKey, Standing, TotalKey};
use tally_core::time::Stamp;
use tally_core::view::{Judged, Moment, Stop, View, Wants};
use tally_core::{Catalog, Refusal};
use tokio::sync::mpsc;

use super::queue::Ticket;
use super::{Failure, MadeDue, Pending, Settled, is_broken};
use crate::{Clock, CommitError, Committed, Engine, Mark, Seen, StoreError, Together, TooLarge};

/// Conflicts in a row before a batch is split.
const CONFLICTS_BEFORE_SPLIT: u32 = 4;
/// Conflicts make batches smaller, down to this.
const BATCH_LEAST: usize = 64;
/// Conflicts in a row before a single command is given up.
const CONFLICTS_MAX: u32 = 32;

/// Loads of one batch. Rules name their rows at once, so two or three are usual.
const ROUNDS_MAX: usize = 64;

/// Decides batches one after another.
pub(super) struct Decider<E, C> {
    engine: Arc<E>,
    catalog: Arc<Catalog>,
    clock: C,
    stamp: Stamp,
    ids: Ids,
    /// Commands to take at once: fewer while batches conflict with those of other servers, since a
    /// larger one meets more of them and loses more.
    batch_max: usize,
    batch_most: usize,
}

/// A batch that was decided, and not yet committed.
struct Draft {
    decided: Vec<Decided>,
    view: View,
    changes: Changes,
    mark: Mark,
    /// How often the store was asked.
    loads: usize,
    /// When each answer is true.
    judged: Judged,
}

impl<E: Engine, C: Clock> Decider<E, C> {
    pub(super) fn new(
        engine: Arc<E>,
        catalog: Arc<Catalog>,
        clock: C,
        floor: Stamp,
        batch_max: usize,
        ids: Ids,
    ) -> Self {
        Self { engine, catalog, clock, stamp: floor, ids, batch_max, batch_most: batch_max }
    }

    /// How many commands to take for the next batch.
    pub(super) fn batch_max(&self) -> usize {
        self.batch_max
    }

    /// Halves after a conflict, grows by an eighth after a success.
    fn adapt(&mut self, commands: usize, conflicts: u32) {
        self.batch_max = if conflicts > 0 {
            (commands / 2).clamp(BATCH_LEAST.min(self.batch_most), self.batch_max)
        } else {
            (self.batch_max + self.batch_max / 8 + 1).min(self.batch_most)
        };
    }

    /// Commits the tickets and hands them on to be answered, in order.
    pub(super) async fn run(&mut self, tickets: Vec<Ticket>, pending: &mpsc::Sender<Pending>) {
        let mut parts = vec![tickets];
        while let Some(mut part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let mut conflicts = 0;
            let outcome = loop {
                match self.attempt(&part, conflicts > 0).await {
                    Err(CommitError::Conflict) if part.len() > 1 && conflicts >= CONFLICTS_BEFORE_SPLIT => break None,
                    // Somebody's large command must not cost the others theirs; and of commands that each wait for what the
                    // one before them asks, fewer at once need fewer rounds.
                    Err(CommitError::Store(error)) if part.len() > 1 && error.is_too_large() => break None,
                    Err(CommitError::Conflict) if conflicts < CONFLICTS_MAX => {
                        conflicts += 1;
                        tokio::time::sleep(self.ids.jitter(conflicts)).await;
                    }
                    other => break Some(other),
                }
            };
            match outcome {
                None => {
                    let rest = part.split_off(part.len() / 2);
                    parts.push(rest);
                    parts.push(part);
                }
                Some(Ok((draft, committed))) => {
                    self.adapt(part.iter().map(|ticket| ticket.weight).sum(), conflicts);
                    let batch = draft.into_pending(part, committed, conflicts);
                    if let Err(mpsc::error::SendError(batch)) = pending.send(batch).await {
                        fail(batch.answers.into_iter().map(|(ticket, _)| ticket), &Failure::unanswered());
                    }
                }
                Some(Err(error)) => fail(part, &failure(error)),
            }
        }
    }

    async fn attempt(&mut self, tickets: &[Ticket], again: bool) -> Result<(Draft, Committed), CommitError> {
        let mut draft = self.draft(tickets, &Wants::default(), again).await?;
        // Rows and totals of several loads are of several moments, and need not fit each other. Only
        // what is wrong as of one moment is a defect, and only what was so at one moment is an answer.
        for _ in 0..ROUNDS_MAX {
            if !draft.judged.is_torn && (draft.loads < 2 || !draft.decided.iter().any(is_broken)) {
                break;
            }
            draft = self.draft(tickets, &draft.view.loaded(), again).await?;
        }
        if draft.judged.is_torn {
            return Err(CommitError::Conflict);
        }
        let committed = if draft.changes.is_empty() && !draft.judged.needs_commit {
            // Nothing to write; the answers still wait for what they were decided on.
            Committed { mark: draft.mark, ..Committed::default() }
        } else {
            self.engine.commit(Seen { mark: draft.mark, view: &draft.view }, &draft.changes).await?
        };
        Ok((draft, committed))
    }

    /// Runs every rule until none of them misses a row. What is known to be wanted comes first, in
    /// one load.
    async fn draft(&mut self, tickets: &[Ticket], known: &Wants, again: bool) -> Result<Draft, StoreError> {
        let commands = tickets.iter().map(|ticket| ticket.weight).sum();
        let mut view = View::new(self.engine.nature().reading, commands, self.ids.next());
        if again {
            view.set_careful();
        }
        let start = view.savepoint();
        view.miss(known);
        let mut mark = None;
        // Taken once: a time that moved with every round would have a rule ask anew in every round.
        let (local_time, mut store_time) = (Stamp::at(self.clock.now()), None);
        // Each round gives out the same ids, so that a row named by a fresh one is found loaded.
        let ids = self.ids.clone();
        for loads in 0..ROUNDS_MAX {
            self.ids = ids.clone();
            view.begin_round();
            let mut decided = Vec::with_capacity(tickets.len());
            let now = store_time.unwrap_or(local_time);
            let mut last = self.floor(now);
            for ticket in tickets {
                // A batch of several commands uses as many stamps.
                let stamp = last.next(now);
                last = Stamp(stamp.0 + ticket.weight as u64 - 1);
                decided.extend(self.decide(&ticket.call, stamp, stamp.time_at(now), &mut view));
            }
            let wants = view.take_missing();
            let is_timed = store_time.is_some() || !self.engine.is_shared();
            if wants.is_empty() && is_timed {
                let judged = view.judge();
                let changes = view.changes(last);
                if !changes.is_empty() {
                    self.stamp = last;
                }
                return Ok(Draft { decided, view, changes, mark: mark.unwrap_or_default(), loads, judged });
            }
            view.rollback(start);
            // Nothing is decided on a store that several servers share but at its own time: one of their clocks may be
            // an hour ahead. So it is asked for the time even if it is asked for nothing else.
            let loaded = self.engine.load(&wants).await?;
            mark = mark.or(Some(loaded.mark));
            store_time = store_time.or(loaded.now);
            self.stamp = self.stamp.max(loaded.newest.unwrap_or_default());
            if wants.is_empty() {
                let untold = || StoreError::Broken("a store that is shared does not tell the time".into());
                store_time.ok_or_else(untold)?;
                continue;
            }
            view.begin_load(loaded.at_once);
            for (key, row) in wants.rows.into_iter().zip(loaded.rows) {
                view.fill_row(key, row);
            }
            for (key, total) in wants.totals.into_iter().zip(loaded.totals) {
                view.fill_total(key, total);
            }
            for (standing, before) in wants.ranks.into_iter().zip(loaded.ranks) {
                view.fill_rank(standing, before);
            }
            for (key, total) in loaded.also {
                view.offer_total(key, total);
            }
        }
        Err(StoreError::TooLarge(TooLarge::Rounds))
    }

    /// What the next stamp is behind. Servers that share a store agree on what a wrong clock's stamps are, and none goes on
    /// from them: so what is stamped so is known to be old.
    fn floor(&self, now: Stamp) -> Stamp {
        if self.engine.is_shared() && self.stamp.is_wrong(now) { Stamp::default() } else { self.stamp }
    }

    /// One rule. A rule that panics harms only its own command.
    fn decide(&mut self, call: &Call, stamp: Stamp, time: Stamp, view: &mut View) -> Option<Decided> {
        let start = view.savepoint();
        let (id, calls) = (self.ids.next(), view.calls());
        let decided = match catch_unwind(AssertUnwindSafe(|| decide(call, stamp, time, id, &self.catalog, view))) {
            Ok(Ok(decided)) => Some(decided),
            Ok(Err(Stop::Miss)) => None,
            Ok(Err(Stop::Refused(refusal))) => Some(refused(refusal)),
            Err(_) => {
                view.rollback(start);
                Some(refused(Refusal::Broken("a rule panicked".into())))
            }
        };
        if decided.is_some() && view.calls() == calls {
            view.end_without_trace();
        }
        decided
    }
}

impl Draft {
    fn into_pending(mut self, tickets: Vec<Ticket>, committed: Committed, conflicts: u32) -> Pending {
        let now = |key: &TotalKey| self.view.final_total(key).unwrap_or_default();
        let adds = self.changes.adds.iter().map(|(key, _)| key);
        let totals: Vec<(&TotalKey, i64)> = match committed.totals {
            Some(actual) => adds.zip(actual).collect(),
            None => adds.map(|key| (key, now(key))).collect(),
        };
        // Another server may have added meanwhile: move the counts in the answers by as much. What is answered as of the
        // load shows what was loaded.
        // What the commit has checked is as it was decided on, whatever was told afterwards.
        let held: HashSet<&TotalKey> = self.view.seen_totals().map(|(key, _)| key).collect();
        let off: HashMap<&TotalKey, i64> = totals
            .iter()
            .map(|(key, actual)| (*key, actual - now(key)))
            .filter(|(key, off)| *off != 0 && !held.contains(key))
            .collect();
        // The same for ranks.
        let view = &self.view;
        let told = view.told_ranks().iter().zip(committed.ranks.unwrap_or_default());
        let off_ranks: HashMap<&Standing, u64> =
            told.map(|(standing, told)| (standing, told.wrapping_sub(view.final_rank(standing)))).collect();
        // And numbers are known only now.
        let taken = self.changes.numbers.iter().map(|(sequence, _)| sequence);
        let firsts: HashMap<&SequenceKey, u64> = taken.zip(committed.numbers).collect();
        let first = |sequence: &SequenceKey| firsts.get(sequence).copied().unwrap_or(0);
        let at_commit = Moment::Commit(Vec::new());
        let moments = self.judged.moments.iter().chain(std::iter::repeat(&at_commit));
        for (decided, moment) in self.decided.iter_mut().zip(moments) {
            // A remembered answer is given as it was.
            let Some(reply) = decided.reply.as_mut().ok().filter(|_| !decided.replayed) else { continue };
            match moment {
                Moment::Commit(ranks) if off.is_empty() && ranks.is_empty() && firsts.is_empty() => {}
                Moment::Commit(ranks) => {
                    let ranks = ranks.iter().map(|standing| off_ranks.get(standing).copied().unwrap_or(0));
                    let off = |total: &TotalKey| off.get(total).copied().unwrap_or(0);
                    reply.correct(&mut Told { off: &off, first: &first, ranks: &mut { ranks } });
                }
                Moment::Load(off) if off.is_empty() => {}
                Moment::Load(off) => {
                    let off: HashMap<&TotalKey, i64> = off.iter().map(|(key, off)| (key, *off)).collect();
                    let off = |total: &TotalKey| off.get(total).copied().unwrap_or(0);
                    reply.correct(&mut Told { off: &off, first: &first, ranks: &mut std::iter::empty() });
                }
            }
        }
        let changed = self.changes.adds.iter().zip(totals).filter(|((_, by), _)| *by != 0);
        let totals = changed.map(|((key, _), (_, total))| (key.clone(), total)).collect();
        let settled = Settled {
            totals,
            commands: tickets.iter().map(|ticket| ticket.weight).sum(),
            conflicts,
            broken: self.decided.iter().filter(|decided| is_broken(decided)).count(),
            due: MadeDue::of(&self.changes),
            at: self.changes.stamp.time(),
        };
        Pending { mark: committed.mark, answers: tickets.into_iter().zip(self.decided).collect(), settled }
    }
}

fn refused(refusal: Refusal) -> Decided {
    Decided { reply: Err(refusal), cost: Cost::default(), replayed: false }
}

fn failure(error: CommitError) -> Failure {
    match error {
        CommitError::Conflict => Failure::Overloaded,
        CommitError::Store(error) => Failure::Store(error),
    }
}

fn fail(tickets: impl IntoIterator<Item = Ticket>, failure: &Failure) {
    for ticket in tickets {
        ticket.answer(Err(failure.clone()));
    }
}

/// Fresh ids: a random start, then a full-period walk, so that two runners do not meet.
#[derive(Clone)]
pub(super) struct Ids {
    state: u64,
}

impl Ids {
    pub(super) fn new(seed: Option<u64>) -> Self {
        Self { state: seed.unwrap_or_else(|| RandomState::new().hash_one("tally")) }
    }

    /// The next number of SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A random wait that grows with every conflict, to let others pass.
    fn jitter(&mut self, conflicts: u32) -> Duration {
        Duration::from_micros(self.next() % (100 << conflicts.min(8)))
    }
}
