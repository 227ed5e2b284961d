//! A commit: one script where everything may be touched together, a transaction over slots elsewhere.

use std::time::Duration;

use redis::{Cmd, Value};
use tally_core::rows::Changes;
use tally_engine::{CommitError, Committed, Mark, Seen, StoreError};
use tokio::time::{Instant, sleep};

use crate::Redis;
use crate::answer::{items, number, some_text, text};
use crate::connection::{Ask, Fault};
use crate::part::Part;
use crate::plan::Plan;

/// How soon a commit whose answer was lost is sent again.
const AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long it is remembered that a commit was called off: longer than it can be on its way.
const CANCELLED_FOR_S: u32 = 3_600;
/// How long it is remembered that a commit was done, once nobody needs to ask any more.
pub(crate) const DONE_FOR_S: &str = "60";

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
            _ => Ok(Self::Cancelled),
        }
    }
}

impl Redis {
    pub(crate) async fn write(&self, seen: &Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        let plan = Plan::new(&self.keys, seen, changes)?;
        self.register(&plan).await?;
        // A subject's total that nobody has asked for is not known.
        let mut totals: Vec<i64> =
            changes.adds.iter().map(|(key, _)| seen.view.final_total(key).unwrap_or_default()).collect();
        let transaction = self.next_transaction();
        if self.keys.slots {
            self.write_slots(&plan, &transaction, changes.stamp, &mut totals).await?;
        } else if let Some(part) = plan.parts.get(&0) {
            let (open, record) = (self.keys.open(0), self.keys.record(0, &transaction));
            let first = [open.as_str(), &record, &self.keys.system("stamp")];
            let ask = part.ask(&first, "alone", &transaction, "", &changes.stamp.0.to_string());
            let outcome = self.decide(&ask, &record).await?;
            take(outcome, part, &mut totals)?;
        }
        Ok(Committed { mark: Mark::default(), totals: Some(totals) })
    }

    /// Sends what decides over a commit until its outcome is known. Sending it again does no harm.
    pub(crate) async fn decide(&self, ask: &Ask, record: &str) -> Result<Outcome, CommitError> {
        let until = Instant::now() + self.timeout();
        // Whether one may be on its way still.
        let mut lost = false;
        loop {
            let error = match self.link.run_safely(&self.scripts.commit, ask).await {
                Ok(value) => return Ok(Outcome::read(value)?),
                Err(Fault::Refused(error)) if !lost => return Err(error.into()),
                Err(Fault::Refused(error) | Fault::Lost(error)) => error,
            };
            lost = true;
            if Instant::now() >= until {
                return self.call_off(record, error).await;
            }
            sleep(AGAIN_AFTER).await;
        }
    }

    /// Nobody knows whether a commit was done, so it is forbidden, unless it was.
    async fn call_off(&self, record: &str, why: StoreError) -> Result<Outcome, CommitError> {
        match self.cancel(record).await {
            Ok(true) => Err(why.into()),
            // It is there, and those who were to have it too have not said so.
            Ok(false) if self.link.options().waits() => Err(why.into()),
            Ok(false) => Ok(Outcome::Done(Vec::new())),
            Err(_) => {
                let why = format!("whether this was done is not known, since its answer was lost: {why}");
                Err(StoreError::Unavailable(why).into())
            }
        }
    }

    /// Forbids a commit for good. False if it was done before.
    pub(crate) async fn cancel(&self, record: &str) -> Result<bool, StoreError> {
        let mut command = Cmd::new();
        command.arg("SET").arg(record).arg("cancelled").arg("EX").arg(CANCELLED_FOR_S).arg("NX").arg("GET");
        match text(self.link.send(&command).await?)? {
            None => Ok(true),
            Some(state) => Ok(state == "cancelled"),
        }
    }
}

/// Fills in what a part was told, or says why there is nothing.
pub(crate) fn take(outcome: Outcome, part: &Part, totals: &mut [i64]) -> Result<(), CommitError> {
    match outcome {
        Outcome::Done(told) => {
            for (place, total) in part.told.iter().zip(told) {
                totals[*place] = total;
            }
            Ok(())
        }
        Outcome::Gone => Ok(()),
        Outcome::Moved | Outcome::Locked | Outcome::Cancelled => Err(CommitError::Conflict),
    }
}
