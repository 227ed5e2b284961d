//! Verification: recount everything as of one moment, report, and mend if asked.
//!
//! It is a job, so it goes on after a stop and its report is kept. What a round found is mended by commands that
//! stand on the job's row, see `core/src/verify/rule.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tally_core::Refusal;
use tally_core::command::{Call, PutRight, Recount, Repair, Step};
use tally_core::operation::Operation;
use tally_core::reply::JobReply;
use tally_core::rows::{DriftItem, EdgeKey, Job, JobId, Key, OrderKey, Round, Row, TotalKey, VerifyReport, Work};
use tally_core::verify::Wrong;
use tally_core::view::Wants;
use tally_engine::{Engine, Failure, Finding, Mend, Runner, StoreError};

use crate::{Error, typed};

/// Drifts and strays that a report spells out; the rest are counted.
const REPORTED_MAX: usize = 1_000;
/// How often the rows read so far are written down.
const TELL_EVERY: Duration = Duration::from_millis(500);
/// How soon to try again when the store does not answer.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// Rounds that may fail before the verification does.
const ROUNDS_FAILED_MAX: u32 = 5;
/// Totals that are mended at once.
const REPAIRS_AT_ONCE: usize = 64;

/// What a recount found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) report: VerifyReport,
    /// By how much each total is off, to be added.
    drifts: Vec<(TotalKey, i64)>,
    /// Edges whose lists are to be put right.
    strays: BTreeSet<EdgeKey>,
    /// Totals of which something is left that counts nowhere.
    leftovers: BTreeSet<TotalKey>,
    /// Orders that are to be put right.
    orders: BTreeSet<OrderKey>,
    /// Rows that do not agree with each other.
    wrong: Vec<Wrong>,
}

impl Found {
    fn take(&mut self, finding: Finding, progress: &mut impl FnMut(u64)) {
        match finding {
            Finding::Progress(rows) => progress(rows),
            Finding::Drift { total, stored, counted } => {
                self.report.drifted += 1;
                if self.report.drift.len() < REPORTED_MAX {
                    self.report.drift.push(DriftItem::new(&total, stored, counted));
                }
                self.drifts.push((total, counted - stored));
            }
            Finding::Stray { found, edge } => {
                self.stray(found);
                // Both sides of one edge may have been found.
                self.strays.extend(edge);
            }
            Finding::Leftover { found, total } => {
                self.stray(found);
                self.leftovers.insert(total);
            }
            Finding::Order { found, order } => {
                self.stray(found);
                self.orders.insert(order);
            }
            Finding::Wrong(wrong) => {
                self.stray(wrong.words());
                self.wrong.push(wrong);
            }
        }
    }

    fn stray(&mut self, found: String) {
        self.report.strayed += 1;
        if self.report.strays.len() < REPORTED_MAX {
            self.report.strays.push(found);
        }
    }
}

/// Recounts everything, and changes nothing.
pub(crate) async fn recount<E: Engine>(
    engine: Arc<E>,
    mut progress: impl FnMut(u64) + Send + 'static,
) -> Result<Found, StoreError> {
    // Reading a whole store is long work on the processor and the disk: not for the event loop.
    let runtime = tokio::runtime::Handle::current();
    let auditing = tokio::task::spawn_blocking(move || {
        let mut found = Found::default();
        let audited = runtime.block_on(engine.audit(&mut |finding| found.take(finding, &mut progress)))?;
        let report = &mut found.report;
        (report.rows, report.edges, report.totals) = (audited.rows, audited.edges, audited.totals);
        Ok(found)
    });
    auditing.await.map_err(|error| StoreError::Broken(format!("the audit stopped: {error}")))?
}

/// The verification that runs.
pub(crate) async fn running(engine: &impl Engine) -> Result<Option<JobId>, StoreError> {
    let pointer = engine.load(&Wants::rows(vec![Key::Job(JobId::VERIFY)])).await?.rows.pop().flatten();
    Ok(match pointer {
        Some(Row::Job(Job { work: Work::Verifying { job, .. }, .. })) => Some(job),
        _ => None,
    })
}

/// Carries a verification to its end, and those that were asked for meanwhile; or until another server has taken over.
pub(crate) struct Verifying<E> {
    pub(crate) engine: Arc<E>,
    pub(crate) runner: Runner,
    pub(crate) job: JobId,
}

impl<E: Engine> Verifying<E> {
    /// Works until there is nothing left to do.
    pub(crate) async fn run(mut self) {
        tracing::info!(job = self.job.text(), "verification begins or goes on");
        let mut failed = 0;
        loop {
            match self.round(&mut failed).await {
                Ok(()) => {
                    tracing::info!(job = self.job.text(), "verification done");
                    match running(&*self.engine).await {
                        Ok(Some(next)) if next != self.job => (self.job, failed) = (next, 0),
                        // Found by the next look for jobs, if there is one.
                        _ => return,
                    }
                }
                // Ended, or in other hands.
                Err(Error::Refused(_) | Error::Stopping) => return,
                Err(error) => {
                    tracing::warn!(%error, job = self.job.text(), "a verification could not go on; it is tried again");
                    tokio::time::sleep(RETRY_EVERY).await;
                }
            }
        }
    }

    /// One recount, with what follows from it.
    async fn round(&self, failed: &mut u32) -> Result<(), Error> {
        let number = self.newest_round().await?;
        self.step(Round { job: self.job, number }, Step::Begin).await?;
        let round = Round { job: self.job, number: number + 1 };
        let found = match self.recount(round).await? {
            Ok(found) => found,
            Err(error) => {
                *failed += 1;
                let hopeless = matches!(error, StoreError::Broken(_)) || *failed >= ROUNDS_FAILED_MAX;
                return match hopeless {
                    true => self.step(round, Step::Fail(error.to_string())).await.map(drop),
                    false => Err(error.into()),
                };
            }
        };
        let end = |mended, report: &VerifyReport| Step::End { mended, report: Box::new(report.clone()) };
        if self.step(round, end(false, &found.report)).await?.finished_at.is_none() {
            let mut report = found.report.clone();
            report.repaired = self.mend(round, found).await?;
            self.step(round, end(true, &report)).await?;
        }
        Ok(())
    }

    async fn newest_round(&self) -> Result<u32, Error> {
        let wants = Wants::rows(vec![Key::Job(self.job)]);
        let job = self.engine.load(&wants).await?.rows.pop().flatten().and_then(Row::into_job);
        let Some(Job { work: Work::Verify { round, .. }, finished_at: None, .. }) = job else {
            return Err(Refusal::NotFound("there is no such verification".into()).into());
        };
        Ok(round)
    }

    /// Has a command decided, however much is waiting: a whole recount stands behind it.
    async fn ask<O: Operation>(&self, operation: O) -> Result<Result<O::Reply, Refusal>, Error> {
        let command = operation.into();
        let reply = loop {
            match self.runner.apply(Call::system(command.clone())).await {
                // Nothing was done.
                Err(Failure::Overloaded) => tokio::time::sleep(RETRY_EVERY).await,
                decided => break decided?.reply,
            }
        };
        match reply {
            Ok(reply) => Ok(Ok(typed(reply)?)),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    async fn step(&self, of: Round, step: Step) -> Result<JobReply, Error> {
        self.ask(Recount { of, step }).await?.map_err(Into::into)
    }

    /// Recounts, and writes down how far it is.
    async fn recount(&self, round: Round) -> Result<Result<Found, StoreError>, Error> {
        let read = Arc::new(AtomicU64::new(0));
        let reading = read.clone();
        let counting = recount(self.engine.clone(), move |rows| reading.store(rows, Ordering::Relaxed));
        let mut counting = std::pin::pin!(counting);
        let mut told = 0;
        loop {
            tokio::select! {
                found = &mut counting => return Ok(found),
                () = tokio::time::sleep(TELL_EVERY) => {}
            }
            let rows = read.load(Ordering::Relaxed);
            if rows != told {
                // How far it is may stay unsaid; only that it is in other hands ends it.
                match self.step(round, Step::Read(rows)).await {
                    Ok(_) => told = rows,
                    Err(over @ (Error::Refused(_) | Error::Stopping)) => return Err(over),
                    Err(error) => tracing::warn!(%error, "how far a verification is could not be written down"),
                }
            }
        }
    }

    /// Mends what the round found. What cannot be mended is left, and the report says how much that is.
    async fn mend(&self, round: Round, found: Found) -> Result<u64, Error> {
        let mut repaired = 0;
        let repairs = found
            .drifts
            .into_iter()
            .map(|(total, by)| async move { self.ask(Repair { found_in: Some(round), total, by }).await });
        let mut repairs = stream::iter(repairs).buffer_unordered(REPAIRS_AT_ONCE);
        while let Some(reply) = repairs.next().await {
            match reply? {
                Ok(_) => repaired += 1,
                Err(over @ (Refusal::Conflict(_) | Refusal::NotFound(_))) => return Err(over.into()),
                Err(error) => tracing::error!(%error, "a total could not be mended"),
            }
        }
        for edge in found.strays {
            repaired += u64::from(self.engine.mend(&Mend::Lists(edge)).await?);
        }
        for total in found.leftovers {
            repaired += u64::from(self.engine.mend(&Mend::Leftover(total)).await?);
        }
        // Orders first: how many members a level has is counted by way of them.
        for order in found.orders {
            repaired += u64::from(self.engine.mend(&Mend::Order(order)).await?);
        }
        let (first, others): (Vec<_>, Vec<_>) = found.wrong.into_iter().partition(|wrong| wrong.fact.comes_first());
        Ok(repaired + self.put_right(round, first).await? + self.put_right(round, others).await?)
    }

    /// Puts right what rows say of each other, many at once.
    async fn put_right(&self, round: Round, wrong: Vec<Wrong>) -> Result<u64, Error> {
        let mut repaired = 0;
        let repairs = wrong.into_iter().map(|Wrong { fact, who, .. }| async move {
            self.ask(PutRight { found_in: Some(round), fact, who }).await
        });
        let mut repairs = stream::iter(repairs).buffer_unordered(REPAIRS_AT_ONCE);
        while let Some(reply) = repairs.next().await {
            match reply? {
                Ok(done) => repaired += u64::from(done.changed),
                Err(over @ (Refusal::Conflict(_) | Refusal::NotFound(_))) => return Err(over.into()),
                Err(error) => tracing::error!(%error, "rows that do not agree could not be mended"),
            }
        }
        Ok(repaired)
    }
}
