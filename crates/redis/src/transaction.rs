//! A commit over several slots of a Cluster, all or nothing.
//!
//! No script reaches over two slots. So all slots but one *prepare*: they check what was decided on, keep
//! the changes aside and hold their rows against others. Then the last one, the one with most to do,
//! checks and changes its own, and with that same script writes down that it is done: that is the moment of the
//! commit. Then the others *finish*. Whoever finds a share that was never finished (its server died) asks
//! the record what became of it, and finishes it; see `open.rs`.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use redis::Cmd;
use tally_core::time::Stamp;
use tally_engine::{CommitError, StoreError};

use crate::Redis;
use crate::commit::{DONE_FOR_S, Fate, Outcome, take};
use crate::part::Part;
use crate::plan::Plan;
use crate::words::Ask;

impl Redis {
    pub(crate) async fn write_slots(
        &self,
        plan: &Plan<'_>,
        transaction: &str,
        stamp: Stamp,
        totals: &mut [i64],
    ) -> Result<(), CommitError> {
        let work = |(_, part): &(&u16, &Part)| part.changes.len();
        let Some((&slot, last)) = plan.parts.iter().max_by_key(work) else { return Ok(()) };
        let others: Vec<(u16, &Part)> =
            plan.parts.iter().filter(|(other, _)| **other != slot).map(|(slot, part)| (*slot, part)).collect();
        let record = self.keys.record(slot, transaction);
        self.prepare_all(&others, transaction, &record).await?;
        let remembered = if others.is_empty() { DONE_FOR_S } else { "0" };
        let open = self.keys.open(slot);
        let ask = last.ask(&[&open, &record], "commit", transaction, "", remembered);
        let refused = match self.decide(&ask, &record).await? {
            Fate::Answered(outcome) => {
                if matches!(outcome, Outcome::Locked) {
                    self.step_aside(slot).await;
                }
                take(outcome, last, totals).err()
            }
            Fate::CalledOff(error) => Some(error.into()),
            // The other slots keep their shares until the record can be asked.
            Fate::Unknown(error) => return Err(error.into()),
        };
        if let Some(error) = refused {
            self.cancel_all(&others, transaction).await;
            return Err(error);
        }
        let finishing = self.finish_all(&others, transaction, &record, totals);
        tokio::join!(finishing, self.raise(stamp));
        Ok(())
    }

    /// Prepares every slot but the last, or none.
    async fn prepare_all(&self, parts: &[(u16, &Part)], transaction: &str, record: &str) -> Result<(), CommitError> {
        let preparing = parts.iter().map(|(slot, part)| async move {
            let open = self.keys.open(*slot);
            let ask = part.ask(&[&open], "prepare", transaction, record, "");
            let outcome = match self.link.run_safely(&self.scripts.commit, &ask).await {
                Ok(value) => Outcome::read(value)?,
                Err(fault) => return Err(CommitError::Store(fault.into())),
            };
            match outcome {
                Outcome::Done(_) => Ok(()),
                Outcome::Locked => {
                    self.step_aside(*slot).await;
                    Err(CommitError::Conflict)
                }
                _ => Err(CommitError::Conflict),
            }
        });
        let prepared = join_all(preparing).await;
        let Some(error) = prepared.into_iter().find_map(Result::err) else { return Ok(()) };
        // One that comes later all the same is met by the next who looks, and called off.
        self.cancel_all(parts, transaction).await;
        Err(error)
    }

    async fn cancel_all(&self, parts: &[(u16, &Part)], transaction: &str) {
        let ending = parts.iter().map(|(slot, part)| self.finish(*slot, part.table.keys(), transaction, false));
        // What cannot be reached now is found and called off by who meets it.
        drop(join_all(ending).await);
    }

    /// Finishes the other slots. The commit stands already, so one that cannot be reached is left to be
    /// finished later, by this server or by any other.
    async fn finish_all(&self, parts: &[(u16, &Part)], transaction: &str, record: &str, totals: &mut [i64]) {
        let ending = parts.iter().map(|(slot, part)| self.finish(*slot, part.table.keys(), transaction, true));
        let mut left = Vec::new();
        for ((slot, part), outcome) in parts.iter().zip(join_all(ending).await) {
            match outcome {
                Ok(outcome) => drop(take(outcome, part, totals)),
                Err(error) => {
                    tracing::warn!(%error, slot, "a slot of a commit is finished later");
                    left.push((*slot, part.table.keys().collect::<Vec<_>>()));
                }
            }
        }
        if parts.is_empty() {
            return;
        }
        if left.is_empty() {
            self.forget(record).await;
        } else {
            self.unfinished.fetch_add(left.len() as u64, Ordering::Relaxed);
            tokio::spawn(self.clone().finish_later(left, transaction.to_owned(), record.to_owned()));
        }
    }

    /// Ends one slot's share.
    pub(crate) async fn finish(
        &self,
        slot: u16,
        keys: impl Iterator<Item = String>,
        transaction: &str,
        done: bool,
    ) -> Result<Outcome, StoreError> {
        let verdict = if done { "done" } else { "cancelled" };
        let ask = Ask::new(std::iter::once(self.keys.open(slot)).chain(keys), &[transaction, verdict]);
        Outcome::read(self.link.run_safely(&self.scripts.finish, &ask).await?)
    }

    /// Nobody has to ask any more what became of a commit. It stays a while for a replica that takes over with
    /// what is older than it.
    pub(crate) async fn forget(&self, record: &str) {
        let mut command = Cmd::new();
        command.arg("EXPIRE").arg(record).arg(DONE_FOR_S);
        if let Err(error) = self.link.send(&command).await {
            tracing::debug!(?error, "a record stays longer than it has to");
        }
    }

    /// Writes down that there is a stamp as new as this. Several commits share a turn.
    async fn raise(&self, stamp: Stamp) {
        self.stamp_wanted.fetch_max(stamp.0, Ordering::AcqRel);
        let mut raised = self.stamp_raised.lock().await;
        if *raised >= stamp.0 {
            return;
        }
        let newest = self.stamp_wanted.load(Ordering::Acquire);
        let ask = Ask::new([self.keys.system("stamp")], &[&newest.to_string()]);
        match self.link.run(&self.scripts.raise, &ask).await {
            Ok(_) => *raised = newest,
            Err(error) => tracing::warn!(error = %StoreError::from(error), "the newest stamp is not written down yet"),
        }
    }
}
