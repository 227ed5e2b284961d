//! Carries jobs to their end, a step a commit, and drops remembered answers that have expired.
//! What a stop interrupts is taken up at the next start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tally_core::command::{Call, Command, Reply};
use tally_core::limits::SWEEP_EDGES_MAX;
use tally_core::rows::{Job, JobId, Key, LimitKey, ListKey, ReplayKey, Row, Side, Work};
use tally_engine::{Clock, Engine, Lease, Place, Range, Runner, SystemClock};
use tokio::sync::{Notify, watch};

use crate::{AnyEngine, Error};

/// How often to look for work that nobody announced.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How often to look whether another server has left its work.
const TAKE_OVER_EVERY: Duration = Duration::from_secs(5);
/// How soon to try again what the store could not take.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// Jobs looked at in one go.
const JOBS_AT_ONCE: usize = 64;

/// Carries jobs, if this server is the one that does.
pub(crate) struct Carrier {
    pub(crate) engine: Arc<AnyEngine>,
    pub(crate) runner: Runner,
    /// Whether it is.
    pub(crate) carries: Arc<AtomicBool>,
}

impl Carrier {
    /// Works until it is stopped.
    pub(crate) async fn run(self, announced: Arc<Notify>, mut stopped: watch::Receiver<bool>) {
        loop {
            let round = async {
                let next_look = match self.work().await {
                    Ok(true) => LOOK_EVERY,
                    Ok(false) => TAKE_OVER_EVERY,
                    Err(error) => {
                        self.carries.store(false, Ordering::Relaxed);
                        tracing::warn!(%error, "a job could not go on; it is tried again");
                        RETRY_EVERY
                    }
                };
                tokio::select! {
                    () = announced.notified() => {}
                    () = tokio::time::sleep(next_look) => {}
                }
            };
            tokio::select! {
                () = round => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
        }
    }

    /// Does what there is to do, unless another server does; that one hears of new work too.
    async fn work(&self) -> Result<bool, Error> {
        let carries = self.engine.lease(Lease::Jobs).await?;
        self.carries.store(carries, Ordering::Relaxed);
        if carries {
            work(&self.engine, &self.runner).await?;
        }
        Ok(carries)
    }
}

async fn work(engine: &AnyEngine, runner: &Runner) -> Result<(), Error> {
    let mut failed = None;
    loop {
        let page = engine.scan(&Range::OpenJobs, JOBS_AT_ONCE).await?;
        for (key, row) in &page.items {
            // A copy is carried by who began it.
            if let (Key::Job(id), Row::Job(job)) = (key, row)
                && !matches!(job.work, Work::Copy { .. })
            {
                // One that cannot go on does not keep the others from it.
                if let Err(error) = carry(engine, runner, *id, job).await {
                    tracing::warn!(%error, job = id.text(), "a job could not go on; it is tried again");
                    failed = Some(error);
                }
            }
        }
        if !page.more || failed.is_some() {
            break;
        }
    }
    expire(engine, runner).await?;
    expire_limits(engine, runner).await?;
    failed.map_or(Ok(()), Err)
}

/// Does a whole job, step by step.
async fn carry(engine: &AnyEngine, runner: &Runner, id: JobId, job: &Job) -> Result<(), Error> {
    tracing::info!(job = id.text(), kind = job.work.name(), "job begins or goes on");
    for list in lists(&job.work) {
        let mut after: Option<Place> = None;
        loop {
            let range = Range::List { list: list.clone(), after: after.take() };
            let page = engine.scan(&range, SWEEP_EDGES_MAX).await?;
            let Some((Key::Edge(key), Row::Edge(edge))) = page.items.last() else { break };
            after = Some(Place::of(&list, key, edge));
            let edges = page.items.iter().filter_map(|(key, _)| match key {
                Key::Edge(key) => Some(key.clone()),
                _ => None,
            });
            runner.apply(Call::system(Command::Sweep { job: id, edges: edges.collect() })).await?.reply?;
        }
    }
    // What is no edge goes in steps as well.
    while let Reply::Job(left) =
        runner.apply(Call::system(Command::Sweep { job: id, edges: Vec::new() })).await?.reply?
    {
        if left.finished_at.is_some() {
            break;
        }
    }
    tracing::info!(job = id.text(), kind = job.work.name(), "job done");
    Ok(())
}

/// The lists that a job walks.
fn lists(work: &Work) -> Vec<ListKey> {
    let (side, id, hidden): (_, _, &[bool]) = match work {
        Work::Forget { subject } => (Side::Subject, subject.as_str(), &[false, true]),
        Work::Clear { object } => (Side::Object, object.as_str(), &[false, true]),
        Work::Hide { subject } => (Side::Subject, subject.as_str(), &[false]),
        Work::Show { subject } => (Side::Subject, subject.as_str(), &[true]),
        Work::Copy { .. } => return Vec::new(),
    };
    hidden.iter().map(|hidden| ListKey { side, id: id.to_owned(), relation: None, hidden: *hidden }).collect()
}

/// Drops what is known of limits that are not used any more.
async fn expire_limits(engine: &AnyEngine, runner: &Runner) -> Result<(), Error> {
    loop {
        let page = engine.scan(&Range::Limits { before: SystemClock.now() }, SWEEP_EDGES_MAX).await?;
        let due =
            page.items.into_iter().filter_map(|(key, _)| if let Key::Limit(key) = key { Some(key) } else { None });
        let limits: Vec<LimitKey> = due.collect();
        if limits.is_empty() {
            return Ok(());
        }
        let Reply::Done { changed: true } = runner.apply(Call::system(Command::ExpireLimits { limits })).await?.reply?
        else {
            // The store's clock is behind this one's: later.
            return Ok(());
        };
    }
}

async fn expire(engine: &AnyEngine, runner: &Runner) -> Result<(), Error> {
    loop {
        let page = engine.scan(&Range::Replays { before: SystemClock.now() }, SWEEP_EDGES_MAX).await?;
        let due: Vec<ReplayKey> = page
            .items
            .into_iter()
            .filter_map(|(key, _)| match key {
                Key::Replay(key) => Some(key),
                _ => None,
            })
            .collect();
        if due.is_empty() {
            return Ok(());
        }
        runner.apply(Call::system(Command::Expire { replays: due })).await?.reply?;
        if !page.more {
            return Ok(());
        }
    }
}
