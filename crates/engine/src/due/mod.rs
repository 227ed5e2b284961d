//! What happens because time has passed, whatever it is: one worker finds the rows that are due, and sends them to the rule of
//! their capability as a command ([`tally_core::due`]).
//!
//! Several servers share the work: each does what is due in the partitions that it holds ([`crate::Lease::Due`]). A server that
//! has lost one and does not know it yet does no harm: a rule looks at every row again, by the time of the store, and leaves
//! alone what another server has settled. What is due is looked for by the store's time too: a server whose own clock is ahead
//! would find rows that no rule lets go, again and again.

mod bell;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tally_core::Catalog;
use tally_core::command::Call;
use tally_core::due::{Settling, settling};
use tally_core::limits::SWEEP_EDGES_MAX;
use tally_core::reply::{Done, Reply};
use tally_core::rows::{Key, Partitions, RowKind};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::Wants;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::{Clock, Engine, Failure, Range, Runner, StoreError, Together};

pub use bell::Bell;
use bell::Lane;

/// How often to look for what another server has made, and that is due sooner than anything here.
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// How often to look for that where somebody waits for it. It is told ([`crate::Topic::Due`]), and so this only bounds what a lost
/// message costs: two short reads of an index for each such kind.
const LOOK_PROMPTLY: Duration = Duration::from_secs(2);
/// How soon to try again what the store could not do.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// Rows of all partitions together. If there are more, each partition is worked on by itself.
const ROWS_AT_A_LOOK: usize = 100;
/// Steps of one kind in one partition before others have their turn.
const STEPS_MAX: usize = 16;

/// How to look.
#[derive(Clone, Copy, Default)]
pub struct DueOptions {
    /// How often at least; left out, often enough.
    pub look_every: Option<Duration>,
    /// Wrong on purpose, for the simulator: looks by the server's own clock, and goes on although nothing changes.
    pub by_own_clock: bool,
}

/// The worker of one server.
pub struct DueWork<E> {
    /// Where.
    pub engine: Arc<E>,
    /// Who decides.
    pub runner: Runner,
    /// What time it is, on a store that has no time of its own.
    pub clock: Arc<dyn Clock>,
    /// What is declared.
    pub catalog: Arc<Catalog>,
    /// How to look.
    pub options: DueOptions,
    /// Rings when something is made here that is due sooner than the next look.
    pub bell: Arc<Bell>,
}

/// Why it could not go on.
#[derive(Debug, thiserror::Error)]
enum Stuck {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Failure(#[from] Failure),
    #[error("it was refused: {0:?}")]
    Refused(tally_core::Refusal),
}

impl<E: Engine> DueWork<E> {
    /// Works until it is stopped.
    pub async fn run(self, mut stopped: watch::Receiver<bool>) {
        self.engine.share();
        let lanes = join_all(self.bell.lanes.iter().map(|lane| self.work(lane)));
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => {}
            _ = lanes => {}
        }
    }

    /// Does what is due of some kinds, for ever.
    async fn work(&self, lane: &Lane) {
        let mut held = self.engine.partitions();
        loop {
            self.look(lane, &mut held).await;
        }
    }

    /// Does what is due, and waits until it is time to look again.
    async fn look(&self, lane: &Lane, held: &mut watch::Receiver<Partitions>) {
        let (from, partitions) = (Instant::now(), *held.borrow_and_update());
        if partitions.is_empty() {
            lane.plan(partitions, Timestamp(u64::MAX));
            return others(held).await;
        }
        match self.settle_all(lane, partitions, held).await {
            Ok(now) => self.wait(lane, from, now, held).await,
            Err(error) => {
                tracing::warn!(%error, "what is due could not be done; it is tried again");
                sleep(RETRY_EVERY).await;
            }
        }
    }

    /// Waits until it is time to look, or there are other partitions to look at. It was `now` at that moment.
    async fn wait(&self, lane: &Lane, from: Instant, now: Timestamp, held: &mut watch::Receiver<Partitions>) {
        loop {
            let until = from + Duration::from_millis(lane.planned().0.saturating_sub(now.0));
            tokio::select! {
                biased;
                () = others(held) => return,
                () = sleep_until(until) => return,
                () = lane.rung() => {}
            }
        }
    }

    /// Settles what is due in these partitions, and plans the next look. Says what time it was.
    async fn settle_all(
        &self,
        lane: &Lane,
        held: Partitions,
        now_held: &watch::Receiver<Partitions>,
    ) -> Result<Timestamp, Stuck> {
        let now = self.time().await?;
        let every = self.options.look_every.unwrap_or(LOOK_EVERY);
        let every = if lane.is_prompt { every.min(LOOK_PROMPTLY) } else { every };
        // What is made from here on and is due sooner is not overlooked.
        lane.plan(held, now.plus_ms(every.as_millis() as u64));
        let mut failed = None;
        for kind in &lane.kinds {
            let Some(settling) = settling(*kind) else { continue };
            let held = held.and(kind.partitions());
            match self.settle_kind(*kind, &settling, held, (now, now_held)).await {
                Ok(next) => lane.plan_sooner(next),
                // One kind that cannot go on does not keep the others from it.
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(now), Err)
    }

    /// The time that the rules go by.
    async fn time(&self) -> Result<Timestamp, Stuck> {
        if !self.engine.is_shared() || self.options.by_own_clock {
            return Ok(self.clock.now());
        }
        let now = self.engine.load(&Wants::default()).await?.now;
        Ok(now.map(Stamp::time).ok_or_else(|| StoreError::Unavailable("the store does not tell its time".into()))?)
    }

    /// Settles rows of a kind. Says by when there is more to do.
    async fn settle_kind(
        &self,
        kind: RowKind,
        settling: &Settling,
        held: Partitions,
        (now, now_held): (Timestamp, &watch::Receiver<Partitions>),
    ) -> Result<Timestamp, Stuck> {
        let never = Timestamp(u64::MAX);
        if held.is_empty() {
            return Ok(never);
        }
        let before = settling.before(now, &self.catalog);
        let due = |partitions| Range::Due { kind, partitions, from: settling.from, before };
        let page = self.engine.scan(&due(held), ROWS_AT_A_LOOK).await?;
        let is_some = !page.items.is_empty();
        if !page.more {
            self.step(settling, page.items.into_iter().map(|(key, _)| key).collect()).await?;
        } else {
            for partition in held.iter() {
                // Another server may have it by now: that one does it.
                if now_held.borrow().contains(partition)
                    && self.settle_backlog(settling, &due(Partitions::one(partition))).await?
                {
                    return Ok(now);
                }
            }
        }
        if is_some && self.options.by_own_clock {
            return Ok(now);
        }
        let later = Range::Due { kind, partitions: held, from: before.max(settling.from), before: never };
        let next = self.engine.scan(&later, 1).await?.items.into_iter().next();
        let by = next.and_then(|(_, row)| row.due()).map(|at| settling.by(at, &self.catalog));
        Ok(by.map_or(never, |by| by.max(now.plus_ms(1))))
    }

    /// Settles what there is in a range, in bounded steps. Says whether there is more to do at once.
    async fn settle_backlog(&self, settling: &Settling, range: &Range) -> Result<bool, Stuck> {
        for _ in 0..STEPS_MAX {
            let page = self.engine.scan(range, SWEEP_EDGES_MAX).await?;
            let changed = self.step(settling, page.items.into_iter().map(|(key, _)| key).collect()).await?;
            // A step that changed nothing would change nothing again: later.
            if !changed || !page.more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One command. Says whether it changed anything.
    async fn step(&self, settling: &Settling, keys: Vec<Key>) -> Result<bool, Stuck> {
        if keys.is_empty() {
            return Ok(false);
        }
        let decided = self.runner.apply(Call::system((settling.command)(keys))).await?;
        let reply = decided.reply.map_err(Stuck::Refused)?;
        Ok(reply != Reply::Done(Done { changed: false }))
    }
}

/// Waits until there are other partitions. A server that has a store to itself has all of them for ever.
async fn others(held: &mut watch::Receiver<Partitions>) {
    if held.changed().await.is_err() {
        pending::<()>().await;
    }
}
