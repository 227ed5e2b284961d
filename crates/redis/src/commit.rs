//! A commit: one script where everything may be touched together, a transaction over slots elsewhere.

use std::time::Duration;

use redis::Value;
use tally_core::rows::Changes;
use tally_core::time::Stamp;
use tally_engine::{CommitError, Committed, Mark, Seen, StoreError};
use tokio::time::{Instant, sleep};

use crate::Redis;
use crate::answer::{items, number, some_text};
use crate::connection::Fault;
use crate::numbered::{Numbered, number_in, server_in};
use crate::part::Part;
use crate::plan::Plan;
use crate::words::Ask;

/// How soon a commit whose answer was lost is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long it is remembered that a commit was called off: longer than it can be on its way, and than the clocks of two
/// nodes are apart, of which one takes over from the other.
const CANCELLED_FOR_S: &str = "172800";

/// What is known of a commit that was sent.
pub(crate) enum Fate {
    /// What the script answered.
    Answered(Outcome),
    /// It was not done, and never will be.
    CalledOff(StoreError),
    /// Nobody can say yet. Whoever meets a share of it asks again.
    Unknown(StoreError),
}

/// What a script answered.
pub(crate) enum Outcome {
    /// Done; the numbers that were asked for.
    Done(Vec<i64>),
    /// Something that was decided on has moved.
    Moved,
    /// Another commit holds something of it.
    Locked,
    /// Somebody has called it off.
    Cancelled,
    /// There was nothing to end.
    Gone,
    /// Something was done in this store that bulk does not know of.
    Unusual,
    /// A list that was to have edges has none.
    Unlisted,
    /// A sequence has no more numbers.
    Exhausted,
}

impl Outcome {
    pub(crate) fn read(value: Value) -> Result<Self, StoreError> {
        let mut words = items(value)?.into_iter();
        match some_text(words.next())?.as_str() {
            "done" => {
                let mut told = Vec::new();
                while let Some(length) = words.next() {
                    told.push(number(Some(length))?.saturating_add(number(words.next())?));
                }
                Ok(Self::Done(told))
            }
            "moved" => Ok(Self::Moved),
            "locked" => Ok(Self::Locked),
            "gone" => Ok(Self::Gone),
            "unusual" => Ok(Self::Unusual),
            "unlisted" => Ok(Self::Unlisted),
            "exhausted" => Ok(Self::Exhausted),
            _ => Ok(Self::Cancelled),
        }
    }
}

impl Redis {
    pub(crate) async fn write(&self, seen: &Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        // A subject's total that nobody has asked for is not known.
        let mut totals: Vec<i64> =
            changes.adds.iter().map(|(key, _)| seen.view.final_total(key).unwrap_or_default()).collect();
        totals.extend(seen.view.told_ranks().iter().map(|standing| seen.view.final_rank(standing) as i64));
        let others = totals.len();
        totals.resize(others + changes.numbers.len(), 0);
        changes.check_numbers().map_err(StoreError::from)?;
        let mut is_done = false;
        while !is_done && self.is_usual() {
            let Some(plan) = Plan::bulk(&self.keys, seen, changes, &self.listed)? else { break };
            is_done = self.write_plan(&plan, changes.stamp, &mut totals).await?;
            if is_done {
                self.listed.learn(&plan.made);
            }
        }
        if !is_done {
            let plan = Plan::new(&self.keys, seen, changes)?;
            self.write_plan(&plan, changes.stamp, &mut totals).await?;
        }
        let lasts = totals.split_off(others).into_iter().zip(&changes.numbers);
        let numbers = lasts.map(|(last, (_, count))| last.unsigned_abs() + 1 - u64::from(*count)).collect();
        let ranks = totals.split_off(changes.adds.len()).into_iter().map(|rank| rank as u64).collect();
        Ok(Committed { mark: Mark::default(), totals: Some(totals), ranks: Some(ranks), numbers })
    }

    /// Commits what is planned. False if it leaves out what it may not leave out any more, and so did nothing.
    pub(crate) async fn write_plan(
        &self,
        plan: &Plan<'_>,
        stamp: Stamp,
        totals: &mut [i64],
    ) -> Result<bool, CommitError> {
        if plan.parts.values().any(Part::writes) {
            self.register(plan).await?;
        }
        if self.keys.slots {
            self.write_slots(plan, stamp, totals).await?;
        } else if let Some(part) = plan.parts.get(&0) {
            let commit = Numbered::begin(&self.numbers, self.server);
            let named = self.named(0, &commit.name);
            let (open, stamped, unusual) = (self.keys.open(0), self.keys.system("stamp"), self.keys.system("unusual"));
            let first = [open.as_str(), &named.ring, &named.record, &stamped, &unusual];
            let words = ["alone", commit.name.as_str(), plan.usual.word(), &stamp.0.to_string()];
            let ask = part.ask(&first, words, &commit, false);
            match self.decide(&ask, &named).await? {
                Fate::Answered(Outcome::Unusual) => {
                    self.set_unusual();
                    return Ok(false);
                }
                Fate::Answered(Outcome::Unlisted) => {
                    self.listed.forget();
                    return Ok(false);
                }
                Fate::Answered(outcome) => take(outcome, part, totals)?,
                Fate::CalledOff(error) | Fate::Unknown(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Sends what decides over a commit until its outcome is known. Sending it again does no harm.
    pub(crate) async fn decide(&self, ask: &Ask, named: &Named) -> Result<Fate, StoreError> {
        let until = Instant::now() + self.timeout();
        // Whether one may be on its way still.
        let mut lost = false;
        loop {
            let error = match self.link.run_safely(&self.scripts.commit, ask).await {
                Ok(value) => match Outcome::read(value)? {
                    // One that comes later could find things as they were, and be done after all.
                    Outcome::Moved | Outcome::Locked | Outcome::Unlisted if lost => {
                        let why = StoreError::Unavailable("Redis: it met another commit".into());
                        return Ok(match self.call_off(ask, named, why).await {
                            Fate::CalledOff(_) => Fate::Answered(Outcome::Cancelled),
                            other => other,
                        });
                    }
                    outcome => return Ok(Fate::Answered(outcome)),
                },
                Err(Fault::Refused(error)) if !lost => return Ok(Fate::CalledOff(error)),
                Err(Fault::Unsure(error)) if !lost && !self.keys.slots => return Ok(Fate::CalledOff(error)),
                Err(Fault::Unsure(error)) if !lost => return Ok(self.call_off(ask, named, error).await),
                Err(fault) => StoreError::from(fault),
            };
            lost = true;
            if Instant::now() >= until {
                return Ok(self.call_off(ask, named, error).await);
            }
            sleep(AGAIN_AFTER).await;
        }
    }

    /// Nobody knows whether a commit was done, so it is forbidden, unless it was.
    async fn call_off(&self, ask: &Ask, named: &Named, why: StoreError) -> Fate {
        match self.cancel(named).await {
            Ok(true) => return Fate::CalledOff(why),
            // It was, so once more it only tells the numbers.
            Ok(false) => {
                if let Ok(value) = self.link.run_safely(&self.scripts.commit, ask).await
                    && let Ok(outcome) = Outcome::read(value)
                {
                    return Fate::Answered(outcome);
                }
            }
            Err(_) => {}
        }
        let why = match why {
            StoreError::Unavailable(why) | StoreError::Broken(why) => why,
            StoreError::TooLarge(why) => why.to_string(),
        };
        let why = format!("whether this was done is not known, since its answer was lost: {why}");
        Fate::Unknown(StoreError::Unavailable(why))
    }

    /// Forbids a commit for good. False if it was done before. Either is then as safe as a commit is.
    pub(crate) async fn cancel(&self, named: &Named) -> Result<bool, StoreError> {
        Ok(self.verdict(named, "cancel").await? != "done")
    }

    /// `done`, `cancelled` or nothing.
    pub(crate) async fn verdict(&self, named: &Named, how: &str) -> Result<String, StoreError> {
        let waits = if self.link.options().waits() { "1" } else { "0" };
        let keys = [named.record.clone(), named.ring.clone()];
        let ask = Ask::new(keys, &[how, CANCELLED_FOR_S, waits, &named.number]);
        some_text(Some(self.link.run_safely(&self.scripts.verdict, &ask).await?))
    }

    /// Where the slot that decides over a commit keeps what became of it.
    pub(crate) fn named(&self, slot: u16, commit: &str) -> Named {
        Named {
            record: self.keys.record(slot, commit),
            ring: self.keys.ring(slot, server_in(commit)),
            number: number_in(commit).to_owned(),
        }
    }
}

/// Where it is kept what became of a commit.
pub(crate) struct Named {
    pub(crate) record: String,
    pub(crate) ring: String,
    pub(crate) number: String,
}

impl Named {
    /// By its record, which is named after it, as its server's ring is named after the server.
    pub(crate) fn of(record: &str) -> Self {
        let (ring, number) = record.rsplit_once('-').unwrap_or((record, "0"));
        Self { record: record.to_owned(), ring: ring.to_owned(), number: number.to_owned() }
    }
}

pub(crate) fn exhausted() -> StoreError {
    StoreError::Broken("a sequence has no more numbers".into())
}

/// Fills in what a part was told, or says why there is nothing.
pub(crate) fn take(outcome: Outcome, part: &Part, totals: &mut [i64]) -> Result<(), CommitError> {
    match outcome {
        Outcome::Done(told) => {
            for (place, total) in part.told.iter().chain(&part.bulk_told).zip(told) {
                totals[*place] = total;
            }
            Ok(())
        }
        Outcome::Gone => Ok(()),
        Outcome::Exhausted => Err(exhausted().into()),
        Outcome::Moved | Outcome::Locked | Outcome::Cancelled | Outcome::Unusual | Outcome::Unlisted => {
            Err(CommitError::Conflict)
        }
    }
}
