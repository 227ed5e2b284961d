//! A commit over several slots of a Cluster, all or nothing.
//!
//! No script reaches over two slots. So all slots but one *prepare*: they check what was decided on, keep
//! the changes aside and hold their rows, and the numbers that are told, against others. Then the last one checks and
//! changes its own, and with that same script writes down that it is done: that is the moment of the
//! commit. Then the others *finish*. Whoever finds a share that was never finished (its server died) asks
//! the record what became of it, and finishes it; see `open.rs`.
//!
//! Where nothing is written, the last slot only looks: while it does, everything that was checked in the others is held, so
//! all of it was so at that moment. Then the others let go.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use redis::Cmd;
use tally_core::time::Stamp;
use tally_engine::{CommitError, StoreError};
use tokio::time::{Instant, sleep};

use crate::Redis;
use crate::commit::{Fate, Named, Outcome, exhausted, take};
use crate::numbered::{Numbered, number_in, server_in};
use crate::part::Part;
use crate::plan::Plan;
use crate::words::Ask;

/// How long to try again where another commit holds something. After that it is decided anew.
const HELD_FOR: Duration = Duration::from_millis(1_000);
/// How often a slot is asked again before all of them are let go.
const ASKS: u32 = 4;
/// How long it is remembered at least that a commit was done, once every slot is finished: a replica may take over with what is
/// older than that.
const DONE_FOR_S: u64 = 60;

/// How often, and how soon, the newest stamp is written down again where the node did not answer: for as long as a server goes
/// by its own reckoning, and some more.
const RAISES: u32 = 360;
const RAISE_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Why it was not done.
enum Miss {
    /// Another commit holds something.
    Held,
    Error(CommitError),
}

impl From<StoreError> for Miss {
    fn from(error: StoreError) -> Self {
        Self::Error(error.into())
    }
}

impl Redis {
    pub(crate) async fn write_slots(
        &self,
        plan: &Plan<'_>,
        stamp: Stamp,
        totals: &mut [i64],
    ) -> Result<(), CommitError> {
        // The one that gives numbers, then the one whose numbers are told: there nobody is held up. Then the one with most to do.
        let work = |(_, part): &(&u16, &Part)| (part.takes, part.told.len(), part.changes.len(), part.checks.len());
        let Some((&last, _)) = plan.parts.iter().max_by_key(work) else { return Ok(()) };
        let until = Instant::now() + HELD_FOR.min(self.timeout());
        let mut tries = 0;
        loop {
            match self.try_slots(plan, last, tries > 0, stamp, totals).await {
                Ok(()) => return Ok(()),
                Err(Miss::Held) if Instant::now() < until => {
                    tries += 1;
                    sleep(self.jitter(tries)).await;
                }
                Err(Miss::Held) => return Err(CommitError::Conflict),
                Err(Miss::Error(error)) => return Err(error),
            }
        }
    }

    /// Once. In order: one slot after the other, so that of two who want the same one is first everywhere.
    async fn try_slots(
        &self,
        plan: &Plan<'_>,
        last: u16,
        in_order: bool,
        stamp: Stamp,
        totals: &mut [i64],
    ) -> Result<(), Miss> {
        let commit = Numbered::begin(&self.numbers, self.server);
        let named = self.named(last, &commit.name);
        let others: Vec<(u16, &Part)> =
            plan.parts.iter().filter(|(slot, _)| **slot != last).map(|(slot, part)| (*slot, part)).collect();
        let writes = plan.parts.values().any(Part::writes);
        let mut told = totals.to_vec();
        if let Err(miss) = self.prepare_all(&others, &commit, &named.record, in_order, plan, &mut told).await {
            // One that comes later all the same is not taken any more.
            self.end_all(&others, &commit, false).await;
            return Err(miss);
        }
        let part = &plan.parts[&last];
        let open = self.keys.open(last);
        let kind = if others.is_empty() || !writes { "" } else { "others" };
        let words = ["commit", commit.name.as_str(), "", kind];
        let waits = self.link.options().waits();
        let ask = part.ask(&[&open, &named.ring, &named.record], words, &commit, waits);
        let missed = match self.decide_held(last, &ask, &named).await? {
            Fate::Answered(Outcome::Locked) => Some(Miss::Held),
            Fate::Answered(outcome) => take(outcome, part, &mut told).err().map(Miss::Error),
            Fate::CalledOff(error) => Some(error.into()),
            // The other slots keep their shares until the record can be asked.
            Fate::Unknown(error) => return Err(error.into()),
        };
        if missed.is_some() {
            self.end_all(&others, &commit, false).await;
        } else if !writes {
            let shares = others.iter().map(|(slot, part)| (*slot, part.table.keys().collect())).collect();
            tokio::spawn(self.clone().let_go(shares, commit));
        } else {
            tokio::join!(self.finish_all(&others, &commit, &named.record), self.raise(stamp));
        }
        match missed {
            Some(miss) => Err(miss),
            None => {
                totals.copy_from_slice(&told);
                Ok(())
            }
        }
    }

    /// Decides; where another commit holds something, a few times.
    async fn decide_held(&self, slot: u16, ask: &Ask, named: &Named) -> Result<Fate, StoreError> {
        for again in 1.. {
            let fate = self.decide(ask, named).await?;
            if !matches!(fate, Fate::Answered(Outcome::Locked)) || again == ASKS {
                return Ok(fate);
            }
            self.step_aside(slot, self.jitter(again)).await;
        }
        Ok(Fate::Answered(Outcome::Locked))
    }

    /// Prepares every slot but the last. What they tell is as it was before, and nobody else changes it.
    async fn prepare_all(
        &self,
        parts: &[(u16, &Part)],
        commit: &Numbered,
        record: &str,
        in_order: bool,
        plan: &Plan<'_>,
        totals: &mut [i64],
    ) -> Result<(), Miss> {
        let preparing = parts.iter().map(|(slot, part)| self.prepare_slot(*slot, part, commit, record, in_order));
        let mut prepared = Vec::with_capacity(parts.len());
        if in_order {
            for preparing in preparing {
                prepared.push(preparing.await);
                if prepared.last().is_some_and(Result::is_err) {
                    break;
                }
            }
        } else {
            prepared = join_all(preparing).await;
        }
        // What went wrong for good comes before what was only held.
        let (mut held, mut all) = (false, Vec::with_capacity(parts.len()));
        for outcome in prepared {
            match outcome {
                Ok(told) => all.push(told),
                Err(Miss::Held) => held = true,
                Err(error) => return Err(error),
            }
        }
        if held {
            return Err(Miss::Held);
        }
        for ((_, part), told) in parts.iter().zip(all) {
            for (place, before) in part.told.iter().zip(told) {
                totals[*place] = before.saturating_add(plan.by[*place]);
            }
        }
        Ok(())
    }

    async fn prepare_slot(
        &self,
        slot: u16,
        part: &Part,
        commit: &Numbered,
        record: &str,
        patient: bool,
    ) -> Result<Vec<i64>, Miss> {
        let (open, ring) = (self.keys.open(slot), self.keys.ring(slot, server_in(&commit.name)));
        let ask = part.ask(&[&open, &ring], ["prepare", &commit.name, record, ""], commit, false);
        for again in 1.. {
            let answer = self.link.run_safely(&self.scripts.commit, &ask).await.map_err(StoreError::from)?;
            match Outcome::read(answer)? {
                Outcome::Done(told) => return Ok(told),
                Outcome::Locked => {
                    self.step_aside(slot, self.jitter(again)).await;
                    if !patient || again >= ASKS {
                        return Err(Miss::Held);
                    }
                }
                Outcome::Exhausted => return Err(exhausted().into()),
                _ => break,
            }
        }
        Err(Miss::Error(CommitError::Conflict))
    }

    /// Ends what was prepared, as done or not. Gives the slots that could not be reached.
    async fn end_all(&self, parts: &[(u16, &Part)], commit: &Numbered, done: bool) -> Vec<(u16, Vec<String>)> {
        let low = commit.low();
        let ending = parts.iter().map(|(slot, part)| self.finish(*slot, part.table.keys(), &commit.name, done, low));
        let mut left = Vec::new();
        for ((slot, part), outcome) in parts.iter().zip(join_all(ending).await) {
            if let Err(error) = outcome {
                // One that was called off is found, and let go, by who meets it.
                tracing::warn!(%error, slot, done, "a slot of a commit is ended later");
                left.push((*slot, part.table.keys().collect::<Vec<_>>()));
            }
        }
        left
    }

    /// Lets go of what was only looked at, behind the answer. One that cannot be reached is let go by who meets it.
    async fn let_go(self, shares: Vec<(u16, Vec<String>)>, commit: Numbered) {
        let low = commit.low();
        for (slot, keys) in shares {
            if let Err(error) = self.finish(slot, keys.into_iter(), &commit.name, false, low).await {
                tracing::debug!(%error, slot, "a slot of a look is let go later");
            }
        }
    }

    /// Finishes the other slots. The commit stands already, so one that cannot be reached is left to be
    /// finished later, by this server or by any other.
    async fn finish_all(&self, parts: &[(u16, &Part)], commit: &Numbered, record: &str) {
        if parts.is_empty() {
            return;
        }
        let left = self.end_all(parts, commit, true).await;
        if left.is_empty() {
            self.forget(record).await;
        } else {
            self.unfinished.fetch_add(left.len() as u64, Ordering::Relaxed);
            tokio::spawn(self.clone().finish_later(left, commit.name.clone(), record.to_owned()));
        }
    }

    /// Ends one slot's share.
    pub(crate) async fn finish(
        &self,
        slot: u16,
        keys: impl Iterator<Item = String>,
        commit: &str,
        done: bool,
        low: u64,
    ) -> Result<(), StoreError> {
        let verdict = if done { "done" } else { "cancelled" };
        let first = [self.keys.open(slot), self.keys.ring(slot, server_in(commit))];
        let words = [commit, verdict, number_in(commit), &low.to_string()];
        let ask = Ask::new(first.into_iter().chain(keys), &words);
        self.link.run_safely(&self.scripts.finish, &ask).await?;
        Ok(())
    }

    /// Nobody has to ask any more what became of a commit. It stays a while for a replica that takes over with
    /// what is older than it.
    pub(crate) async fn forget(&self, record: &str) {
        let mut command = Cmd::new();
        command.arg("EXPIRE").arg(record).arg(DONE_FOR_S.max(2 * self.timeout().as_secs()));
        if let Err(error) = self.link.send(&command).await {
            tracing::debug!(?error, "a record stays longer than it has to");
        }
    }

    /// Writes down that there is a stamp as new as this. Several commits share a turn.
    async fn raise(&self, stamp: Stamp) {
        if let Err(error) = self.try_raise(stamp).await {
            tracing::warn!(%error, "the newest stamp is not written down yet");
            if !self.stamp_pending.swap(true, Ordering::AcqRel) {
                tokio::spawn(self.clone().raise_later());
            }
        }
    }

    /// The node that gives the time is silent. Whoever takes over from it must not give one that was used already.
    async fn raise_later(self) {
        for _ in 0..RAISES {
            sleep(RAISE_AGAIN_AFTER).await;
            self.stamp_pending.store(false, Ordering::Release);
            if self.try_raise(Stamp(self.stamp_wanted.load(Ordering::Acquire))).await.is_ok() {
                return;
            }
            if self.stamp_pending.swap(true, Ordering::AcqRel) {
                // Somebody else goes on with it.
                return;
            }
        }
        self.stamp_pending.store(false, Ordering::Release);
    }

    async fn try_raise(&self, stamp: Stamp) -> Result<(), StoreError> {
        self.stamp_wanted.fetch_max(stamp.0, Ordering::AcqRel);
        let mut raised = self.stamp_raised.lock().await;
        if *raised >= stamp.0 {
            return Ok(());
        }
        let newest = self.stamp_wanted.load(Ordering::Acquire);
        let ask = Ask::new([self.keys.system("stamp")], &[&newest.to_string()]);
        self.link.run(&self.scripts.raise, &ask).await?;
        *raised = newest;
        Ok(())
    }
}
