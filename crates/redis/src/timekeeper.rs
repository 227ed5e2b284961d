//! The store's time: of one clock, which several servers and all nodes of a Cluster share.
//!
//! The node of the slot of the store as a whole gives it, see `scripts/time.lua`; every load asks for it. On one node the
//! load's own script does. While that node cannot be reached, because another one is about to take over from it, time goes
//! on by this server's reckoning: what it was last told, and what has passed since.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tally_core::time::Stamp;
use tally_engine::StoreError;

use crate::Redis;
use crate::answer::{items, number, some_text};
use crate::words::Ask;

/// How long this server's own reckoning is trusted.
const RECKONED_FOR: Duration = Duration::from_secs(120);
/// How far the store's time may be from the clock of its node before that is said.
const APART_MAX_US: i64 = 60_000_000;

/// How far something is ahead of the clock of the node that gives the time; behind is negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeApart {
    /// The store's time.
    pub time_ahead_ms: i64,
    /// The newest stamp in the store.
    pub stamp_ahead_ms: i64,
}

/// What this server knows of the store's time.
#[derive(Default)]
pub(crate) struct Timekeeper {
    told: Mutex<Option<(Stamp, Instant)>>,
    /// Whether the node that gives the time did not answer last time.
    silent: AtomicBool,
    /// Whether somebody is asking or writing already.
    asking: AtomicBool,
    writing: AtomicBool,
    warned: AtomicBool,
}

impl Timekeeper {
    /// What it should be by now.
    fn reckoned(&self) -> Option<Stamp> {
        let (told, since) = (*self.told.lock().ok()?)?;
        let passed = since.elapsed();
        (passed < RECKONED_FOR).then(|| Stamp(told.0 + passed.as_micros() as u64))
    }

    fn learn(&self, time: Stamp) {
        if let Ok(mut told) = self.told.lock()
            && told.is_none_or(|(before, _)| before < time || before.is_wrong(time))
        {
            *told = Some((time, Instant::now()));
        }
    }
}

impl Redis {
    /// The store's time, on a Cluster.
    pub(crate) async fn time(&self) -> Result<Stamp, StoreError> {
        let keeper = &self.timekeeper;
        if keeper.silent.load(Ordering::Relaxed)
            && let Some(reckoned) = keeper.reckoned()
        {
            // Nobody waits for a node that is silent; one asks whether it still is.
            if !keeper.asking.swap(true, Ordering::AcqRel) {
                let own = self.clone();
                tokio::spawn(async move {
                    let _ = own.ask_time().await;
                    own.timekeeper.asking.store(false, Ordering::Release);
                });
            }
            return Ok(reckoned);
        }
        match self.ask_time().await {
            Ok(time) => Ok(time),
            Err(error) => keeper.reckoned().ok_or(error),
        }
    }

    async fn ask_time(&self) -> Result<Stamp, StoreError> {
        let ask = Ask::new(self.time_keys(), &[self.is_cluster()]);
        let answer = self.link.run(&self.scripts.now, &ask).await;
        self.timekeeper.silent.store(answer.is_err(), Ordering::Relaxed);
        let mut answer = items(answer?)?.into_iter();
        let (time, pressing) = (number(answer.next())?, number(answer.next())?);
        self.told_time(time, pressing).await
    }

    /// Takes what a script said of the time, and sees that it is written down.
    pub(crate) async fn told_time(&self, time: i64, pressing: i64) -> Result<Stamp, StoreError> {
        let keeper = &self.timekeeper;
        if pressing == 2 {
            match self.tick().await {
                Ok(time) => return Ok(time),
                // One that takes no writes can still be read.
                Err(error) => tracing::debug!(%error, "the time is written down later"),
            }
        }
        if pressing == 1 && !keeper.writing.swap(true, Ordering::AcqRel) {
            let own = self.clone();
            tokio::spawn(async move {
                if let Err(error) = own.tick().await {
                    tracing::debug!(%error, "the time is written down later");
                }
                own.timekeeper.writing.store(false, Ordering::Release);
            });
        }
        let time = Stamp(time as u64);
        keeper.learn(time);
        Ok(time)
    }

    /// Writes the time down, so that it goes on from there whichever node gives it next.
    pub(crate) async fn tick(&self) -> Result<Stamp, StoreError> {
        let expected = self.timekeeper.reckoned().unwrap_or_default();
        let ask = Ask::new(self.time_keys(), &[self.is_cluster(), &expected.0.to_string()]);
        let mut answer = items(self.link.run(&self.scripts.tick, &ask).await?)?.into_iter();
        let (time, clock) = (number(answer.next())?, number(answer.next())?);
        let ahead = time - clock;
        if ahead.abs() > APART_MAX_US && !self.timekeeper.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                ahead_s = ahead / 1_000_000,
                "the store's time is not what its node's clock says: that clock was changed, or another node has taken over; \
                 it is brought there slowly. Keep the clocks of all nodes right (NTP)"
            );
        }
        let time = Stamp(time as u64);
        self.timekeeper.learn(time);
        Ok(time)
    }

    /// The newest stamp that was written down, unless a clock was wrong then: time would stand still until it is reached.
    pub(crate) async fn bounded(&self, stamp: Stamp) -> Result<Stamp, StoreError> {
        let now = self.tick().await?;
        if !stamp.is_wrong(now) {
            return Ok(stamp);
        }
        tracing::warn!(
            ahead_s = (stamp.0 - now.0) / 1_000_000,
            "the newest stamp in the store is more than a day ahead: a clock was wrong once. It is passed over, so that time \
             goes on; what was written then is listed as newer than it is"
        );
        Ok(now)
    }

    /// How far the store's time and its newest stamp are ahead of the clock of the node that gives it. Changes nothing.
    pub async fn time_apart(&self) -> Result<TimeApart, StoreError> {
        let ask = Ask::new(self.time_keys(), &[self.is_cluster()]);
        let mut answer = items(self.link.run(&self.scripts.now, &ask).await?)?.into_iter();
        let (time, clock) = (number(answer.next())?, number(answer.nth(1))?);
        let stamp: u64 = some_text(answer.next())?.parse().unwrap_or(0);
        let ahead_ms = |of: u64| i64::try_from(of).unwrap_or(i64::MAX).saturating_sub(clock) / 1_000;
        Ok(TimeApart { time_ahead_ms: ahead_ms(time as u64), stamp_ahead_ms: ahead_ms(stamp) })
    }

    fn time_keys(&self) -> [String; 2] {
        [self.keys.system("time"), self.keys.system("stamp")]
    }

    fn is_cluster(&self) -> &'static str {
        if self.keys.slots { "1" } else { "0" }
    }
}
