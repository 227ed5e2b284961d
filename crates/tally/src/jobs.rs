//! Carries jobs to their end, a step a commit. What a stop interrupts is taken up at the next start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tally_core::command::{Call, Command, Sweep};
use tally_core::limits::SWEEP_EDGES_MAX;
use tally_core::reply::JobReply;
use tally_core::rows::{Job, JobId, Key, ListKey, Row, Side, Work};
use tally_core::view::Wants;
use tally_engine::{Engine, Lease, Place, Range, Runner, Together};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::Error;
use crate::verify::{self, Verifying};

/// How often to look for work that nobody announced, or whose announcement was lost.
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// How often to look whether another server has left its work.
const TAKE_OVER_EVERY: Duration = Duration::from_secs(5);
/// How soon to try again what the store could not take.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// How often a job that is asked for again and again is walked before others have their turn.
const WALKS_MAX: usize = 4;
/// Jobs in a round.
const JOBS_A_ROUND: usize = 10_000;
/// Jobs between two looks for a verification.
const JOBS_AT_ONCE: usize = 64;

/// Carries jobs, if this server is the one that does.
pub(crate) struct Carrier<E> {
    pub(crate) engine: Arc<E>,
    pub(crate) runner: Runner,
    pub(crate) look_every: Option<Duration>,
    /// Whether it is.
    pub(crate) carries: Arc<AtomicBool>,
}

impl<E: Engine> Carrier<E> {
    /// Works until it is stopped.
    pub(crate) async fn run(self, announced: Arc<Notify>, mut stopped: watch::Receiver<bool>) {
        // Ends with this.
        let mut verifying = JoinSet::new();
        loop {
            let round = async {
                let next_look = match self.work(&mut verifying).await {
                    Ok(next_look) => next_look,
                    Err(error) => {
                        self.carries.store(false, Ordering::Relaxed);
                        tracing::warn!(%error, "a job could not go on; it is tried again");
                        RETRY_EVERY
                    }
                };
                tokio::select! {
                    biased;
                    () = announced.notified() => {}
                    () = tokio::time::sleep(next_look) => {}
                }
            };
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = round => {}
            }
        }
    }

    /// Does what there is to do, unless another server does; that one hears of new work too. Says how long to wait for the next
    /// look.
    async fn work(&self, verifying: &mut JoinSet<()>) -> Result<Duration, Error> {
        let carries = self.engine.lease(Lease::Jobs).await?;
        self.carries.store(carries, Ordering::Relaxed);
        if !carries {
            return Ok(TAKE_OVER_EVERY);
        }
        self.verify(verifying).await?;
        let more = self.jobs(verifying).await?;
        Ok(if more { Duration::ZERO } else { self.look_every.unwrap_or(LOOK_EVERY) })
    }

    /// Carries to its end every job that is open now. Those that are begun meanwhile come in the next round, however many and
    /// whatever their ids, so that nobody's waits for ever. Says whether there were more than a round takes.
    async fn jobs(&self, verifying: &mut JoinSet<()>) -> Result<bool, Error> {
        let page = self.engine.scan(&Range::OPEN_JOBS, JOBS_A_ROUND).await?;
        let mut failed = None;
        for some in page.items.chunks(JOBS_AT_ONCE) {
            // As they are now: the round may have taken a while.
            let wants = Wants::rows(some.iter().map(|(key, _)| key.clone()).collect());
            let rows = self.engine.load(&wants).await?.rows;
            for (key, row) in wants.rows.iter().zip(&rows) {
                // A copy is carried by who began it, a verification beside all others.
                if let (Key::Job(id), Some(Row::Job(job))) = (key, row)
                    && job.finished_at.is_none()
                    && !matches!(job.work, Work::Copy { .. } | Work::Verify { .. } | Work::Verifying { .. })
                {
                    // One that cannot go on does not keep the others from it.
                    if let Err(error) = carry(&*self.engine, &self.runner, *id, job).await {
                        tracing::warn!(%error, job = id.text(), "a job could not go on; it is tried again");
                        failed = Some(error);
                    }
                }
            }
            self.verify(verifying).await?;
        }
        failed.map_or(Ok(page.more), Err)
    }

    /// A verification goes on beside the other jobs, which need not wait until everything is counted.
    async fn verify(&self, verifying: &mut JoinSet<()>) -> Result<(), Error> {
        while verifying.try_join_next().is_some() {}
        if let Some(job) = verify::running(&*self.engine).await?
            && verifying.is_empty()
        {
            verifying.spawn(Verifying { engine: self.engine.clone(), runner: self.runner.clone(), job }.run());
        }
        Ok(())
    }
}

/// Does a whole job, step by step.
async fn carry(engine: &impl Engine, runner: &Runner, id: JobId, job: &Job) -> Result<(), Error> {
    tracing::info!(job = id.text(), kind = job.work.name(), "job begins or goes on");
    let mut job = job.clone();
    for _ in 0..WALKS_MAX {
        walk(engine, runner, id, &job).await?;
        match end(engine, runner, id, &job).await? {
            // Asked for again meanwhile: there may be more before the place where the walk began.
            Some(again) => job = again,
            None => {
                tracing::info!(job = id.text(), kind = job.work.name(), "job done");
                break;
            }
        }
    }
    Ok(())
}

/// What is no edge goes in steps as well. Gives the job as it is, if it is to be walked again.
async fn end(engine: &impl Engine, runner: &Runner, id: JobId, job: &Job) -> Result<Option<Job>, Error> {
    loop {
        let sweep = Command::from(Sweep { job: id, before: job.before, edges: Vec::new() });
        let reply = runner.apply(Call::system(sweep)).await?.reply?;
        if !JobReply::try_from(reply).is_ok_and(|left| left.finished_at.is_none()) {
            return Ok(None);
        }
        let now = engine.load(&Wants::rows(vec![Key::Job(id)])).await?.rows.into_iter().next().flatten();
        if let Some(Row::Job(now)) = now
            && now.before != job.before
        {
            return Ok(Some(now));
        }
    }
}

/// Sends every edge of a job, as the lists are now.
async fn walk(engine: &impl Engine, runner: &Runner, id: JobId, job: &Job) -> Result<(), Error> {
    for list in lists(&job.work) {
        let mut after: Option<Place> = None;
        loop {
            let range = Range::List { list: list.clone(), after: after.take() };
            let page = engine.scan(&range, SWEEP_EDGES_MAX).await?;
            let Some((Key::Edge(key), Row::Edge(edge))) = page.items.last() else { break };
            after = Some(Place::of(&list, key, edge));
            let edge = |key: &Key| if let Key::Edge(key) = key { Some(key.clone()) } else { None };
            let edges = page.items.iter().filter_map(|(key, _)| edge(key));
            let sweep = Command::from(Sweep { job: id, before: job.before, edges: edges.collect() });
            runner.apply(Call::system(sweep)).await?.reply?;
        }
    }
    Ok(())
}

/// The lists that a job walks.
fn lists(work: &Work) -> Vec<ListKey> {
    let (side, id, hidden): (_, _, &[bool]) = match work {
        Work::Forget { subject } => (Side::Subject, subject.as_str(), &[false, true]),
        Work::Clear { object } => (Side::Object, object.as_str(), &[false, true]),
        Work::Hide { subject } => (Side::Subject, subject.as_str(), &[false]),
        Work::Show { subject } => (Side::Subject, subject.as_str(), &[true]),
        Work::Copy { .. } | Work::Verify { .. } | Work::Verifying { .. } | Work::Ended { .. } => return Vec::new(),
    };
    hidden.iter().map(|hidden| ListKey { side, id: id.to_owned(), relation: None, hidden: *hidden }).collect()
}
