//! The way between one server and the store: it takes time, loses things, stands still, and ends with the server.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tally::engine::StoreError;
use tokio::time::{Instant, sleep, sleep_until};

use crate::random::Random;

/// Nobody here has a reason to ask more often. Whoever does has to wait long, so that such a run ends, too.
const CALLS_MAX: u64 = 6_000;

/// What one run of one server has to the store.
pub(crate) struct Link {
    random: Arc<Random>,
    /// How often in a hundred something is lost, and until when: what must end at last ends in peace.
    loss: (u64, Instant),
    /// Whether a way takes a millisecond, and never more.
    is_fast: bool,
    dead: AtomicBool,
    calls: AtomicU64,
    trouble: Mutex<Trouble>,
}

#[derive(Clone, Copy)]
struct Trouble {
    /// The server stands still until then.
    paused_until: Instant,
    /// The store cannot be reached until then.
    away_until: Instant,
}

impl Link {
    pub(crate) fn new(random: Arc<Random>, loss: (u64, Instant), is_fast: bool) -> Self {
        let now = Instant::now();
        let trouble = Mutex::new(Trouble { paused_until: now, away_until: now });
        Self { random, loss, is_fast, dead: AtomicBool::new(false), calls: AtomicU64::new(0), trouble }
    }

    /// The server is no more: whatever it waits for never comes.
    pub(crate) fn cut(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    pub(crate) fn pause(&self, until: Instant) {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).paused_until = until;
    }

    pub(crate) fn lose_store(&self, until: Instant) {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).away_until = until;
    }

    /// How often the store was asked.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn is_worn_out(&self) -> bool {
        self.calls() > CALLS_MAX
    }

    /// Asks the store for something that happens at one moment. Where that fails, nobody knows whether it has.
    pub(crate) async fn call<T>(&self, act: impl FnOnce() -> T) -> Result<T, StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.is_worn_out() {
            sleep(Duration::from_secs(1)).await;
        }
        self.cross().await?;
        let done = act();
        self.cross().await?;
        Ok(done)
    }

    /// One way.
    async fn cross(&self) -> Result<(), StoreError> {
        self.stand_still().await;
        let lost = StoreError::Unavailable("lost on the way".into());
        if self.trouble().away_until > Instant::now() {
            sleep(self.random.between_ms(1, 300)).await;
            return Err(lost);
        }
        let most_ms = match self.random.below(50) {
            _ if self.is_fast => 1,
            0 => 200,
            _ => 4,
        };
        sleep(self.random.between_ms(1, most_ms)).await;
        let (loss, until) = self.loss;
        if Instant::now() < until && self.random.percent(loss) { Err(lost) } else { Ok(()) }
    }

    /// Waits while the server stands still, and for ever when it is no more.
    pub(crate) async fn stand_still(&self) {
        loop {
            if self.is_cut() {
                std::future::pending::<()>().await;
            }
            let until = self.trouble().paused_until;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }

    fn trouble(&self) -> Trouble {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
