//! Drops what has expired: remembered answers, jobs that have ended, and what is known of limits that nobody uses any
//! more.
//!
//! The rules decide what has expired by the time of the store, so that is the time to look by: a server whose own
//! clock is ahead would find rows that no rule lets go, again and again.

use tally_core::command::{Call, Command, Reply};
use tally_core::limits::SWEEP_EDGES_MAX;
use tally_core::rows::{JobId, Key, LimitKey, ReplayKey};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::Wants;
use tally_engine::{Clock, Engine, Range, Runner};

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
    let replays = expire(engine, runner, &Range::Replays { before }, cleaning).await?;
    let limits = expire(engine, runner, &Range::Limits { before }, cleaning).await?;
    let ended = Timestamp(before.0.saturating_sub(cleaning.jobs_ttl_ms));
    let jobs = expire(engine, runner, &Range::EndedJobs { before: ended }, cleaning).await?;
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
        let changed = reply == Reply::Done { changed: true } || cleaning.by_own_clock;
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
        return Some(Command::Expire { replays });
    }
    if !jobs.is_empty() {
        return Some(Command::ExpireJobs { jobs });
    }
    (!limits.is_empty()).then_some(Command::ExpireLimits { limits })
}
