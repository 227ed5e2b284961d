//! Drops what has expired: remembered answers, jobs that have ended, and what is known of limits that nobody uses any
//! more.
//!
//! The rules decide what has expired by the time of the store, so that is the time to look by: a server whose own
//! clock is ahead would find rows that no rule lets go, again and again.

use tally_core::command::{Call, Command, ExpireJobs, ExpireLimits, ExpireReplays};
use tally_core::limits::SWEEP_EDGES_MAX;
use tally_core::reply::{Done, Reply};
use tally_core::rows::{JobId, Key, LimitKey, ReplayKey, RowKind};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::Wants;
use tally_engine::{Clock, Engine, Range, Runner, Together};

use crate::Error;

/// Steps of each kind in one go; then jobs are looked for again.
const STEPS_MAX: usize = 16;

/// How to clean.
#[derive(Clone, Copy)]
pub(crate) struct Cleaning {
    /// How long a job that has ended can be asked for.
    pub(crate) jobs_ttl_ms: u64,
    /// Wrong on purpose: looks by the server's own clock, and goes on although nothing changes.
    pub(crate) by_own_clock: bool,
}

/// One bounded piece of cleaning. Says whether there is more to do at once.
pub(crate) async fn clean(
    engine: &impl Engine,
    runner: &Runner,
    clock: &dyn Clock,
    cleaning: Cleaning,
) -> Result<bool, Error> {
    let own = cleaning.by_own_clock.then(|| clock.now());
    let Some(before) = own.or(time(engine, clock).await?) else { return Ok(false) };
    let replays = expire(engine, runner, &Range::due(RowKind::Replay, before), cleaning).await?;
    let limits = expire(engine, runner, &Range::due(RowKind::Limit, before), cleaning).await?;
    let ended = Timestamp(before.0.saturating_sub(cleaning.jobs_ttl_ms));
    let jobs = expire(engine, runner, &Range::ended_jobs(ended), cleaning).await?;
    Ok(replays || limits || jobs)
}

/// The time that the rules go by. A shared store that cannot tell it now has nothing cleaned.
async fn time(engine: &impl Engine, clock: &dyn Clock) -> Result<Option<Timestamp>, Error> {
    if !engine.is_shared() {
        return Ok(Some(clock.now()));
    }
    Ok(engine.load(&Wants::default()).await?.now.map(Stamp::time))
}

async fn expire(engine: &impl Engine, runner: &Runner, range: &Range, cleaning: Cleaning) -> Result<bool, Error> {
    for _ in 0..STEPS_MAX {
        let page = engine.scan(range, SWEEP_EDGES_MAX).await?;
        let Some(step) = step(page.items.into_iter().map(|(key, _)| key)) else { return Ok(false) };
        let reply = runner.apply(Call::system(step)).await?.reply?;
        // A step that changed nothing would change nothing again: later.
        let changed = reply == Reply::Done(Done { changed: true }) || cleaning.by_own_clock;
        if !changed || !page.more {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The command that drops these rows, which are all of one kind.
fn step(keys: impl Iterator<Item = Key>) -> Option<Command> {
    let (mut replays, mut limits, mut jobs): (Vec<ReplayKey>, Vec<LimitKey>, Vec<JobId>) = Default::default();
    for key in keys {
        if let Key::Replay(key) = key {
            replays.push(key);
        } else if let Key::Limit(key) = key {
            limits.push(key);
        } else if let Key::Job(id) = key {
            jobs.push(id);
        }
    }
    if !replays.is_empty() {
        return Some(Command::from(ExpireReplays { replays }));
    }
    if !jobs.is_empty() {
        return Some(Command::from(ExpireJobs { jobs }));
    }
    (!limits.is_empty()).then_some(Command::from(ExpireLimits { limits }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use tally_core::command::{Forget, Sweep};

    use tally_core::rows::Row;
    use tally_core::{Catalog, SubjectId};
    use tally_engine::RunnerOptions;
    use tally_engine::clock::ManualClock;
    use tally_engine::memory::Memory;

    use super::*;

    /// The jobs that there are, and whether each has ended.
    async fn jobs(engine: &Memory, ids: &[JobId]) -> Vec<Option<bool>> {
        let wants = Wants::rows(ids.iter().copied().map(Key::Job).collect());
        let rows = engine.load(&wants).await.unwrap().rows;
        rows.into_iter().map(|row| row.map(|row| matches!(row, Row::Job(job) if job.finished_at.is_some()))).collect()
    }

    #[tokio::test]
    async fn a_job_that_has_ended_goes_after_its_time_and_no_other_does() {
        const KEEP_MS: u64 = 60_000;
        let (engine, clock) = (Arc::new(Memory::default()), ManualClock::at(1_000_000));
        let mut catalog = Catalog::default();
        catalog.jobs_ttl_ms = KEEP_MS;
        let started =
            Runner::start(engine.clone(), Arc::new(catalog), clock.clone(), RunnerOptions::default(), Arc::new(|_| {}))
                .await;
        let (runner, _running) = started.unwrap();
        let apply = async |command| runner.apply(Call::system(command)).await.unwrap().reply.unwrap();
        let forget = |who: &str| Command::from(Forget { subject: SubjectId::new(who).unwrap() });
        let ids = ["early", "late", "open"].map(|who| forget(who).job().unwrap());
        for (id, who) in ids.into_iter().zip(["early", "late", "open"]) {
            apply(forget(who)).await;
            if who == "late" {
                clock.set(1_030_000);
            }
            if who != "open" {
                apply(Command::from(Sweep { job: id, before: Stamp(u64::MAX), edges: Vec::new() })).await;
            }
        }
        let cleaned = async |at_ms| {
            clock.set(at_ms);
            clean(&*engine, &runner, &clock, Cleaning { jobs_ttl_ms: KEEP_MS, by_own_clock: false }).await.unwrap();
            jobs(&engine, &ids).await
        };
        assert_eq!(cleaned(1_059_000).await, [Some(true), Some(true), Some(false)]);
        assert_eq!(cleaned(1_061_000).await, [None, Some(true), Some(false)]);
        assert_eq!(cleaned(1_091_000).await, [None, None, Some(false)]);
        assert_eq!(cleaned(u64::MAX >> 22).await, [None, None, Some(false)], "what has not ended stays");
    }
}
