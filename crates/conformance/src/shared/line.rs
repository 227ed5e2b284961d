//! The way from one server to the store: others come in between, and it can break.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tally_core::rows::Changes;
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_engine::faulty::Fault;
use tally_engine::{
    Audited, CommitError, Committed, Engine, Finding, Follower, Loaded, Mark, Mend, Nature, Page, Range, Seen,
    StoreError,
};

use crate::random::Random;

/// When a line breaks, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Break {
    /// So many loads, commits and settlements go through before it.
    pub(crate) steps: u64,
    /// Whether the step at which it breaks is still done.
    pub(crate) fault: Fault,
    /// Whether nothing goes through afterwards, as if the server had ended.
    pub(crate) for_good: bool,
}

/// An engine as one server sees it. Between a load and its commit it gives way to the others now
/// and then, so that what can come in between does, on a store that never waits too.
pub(crate) struct Line<E> {
    engine: Arc<E>,
    random: AtomicU64,
    steps: AtomicU64,
    conflicts: AtomicU64,
    breaks: Mutex<Option<Break>>,
}

impl<E: Engine> Line<E> {
    pub(super) fn new(engine: Arc<E>, seed: u64) -> Self {
        let (random, steps, conflicts) = (AtomicU64::new(seed), AtomicU64::new(0), AtomicU64::new(0));
        Self { engine, random, steps, conflicts, breaks: Mutex::default() }
    }

    /// Breaks it, counted from now.
    pub(crate) fn break_after(&self, at: Break) {
        let steps = self.steps.load(Ordering::SeqCst) + at.steps;
        *self.breaks.lock().unwrap_or_else(PoisonError::into_inner) = Some(Break { steps, ..at });
    }

    /// Whether it has come to that.
    pub(crate) fn is_broken(&self) -> bool {
        let broken = *self.breaks.lock().unwrap_or_else(PoisonError::into_inner);
        broken.is_some_and(|broken| self.steps.load(Ordering::SeqCst) > broken.steps)
    }

    /// How many commits were decided on what had moved.
    pub(crate) fn conflicts(&self) -> u64 {
        self.conflicts.load(Ordering::SeqCst)
    }

    async fn give_way(&self) {
        let drawn = Random(self.random.fetch_add(1, Ordering::Relaxed)).below(6);
        for _ in 0..drawn {
            tokio::task::yield_now().await;
        }
    }

    async fn step<T, X: From<StoreError>>(&self, work: impl Future<Output = Result<T, X>>) -> Result<T, X> {
        let step = self.steps.fetch_add(1, Ordering::SeqCst);
        let broken = *self.breaks.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = || X::from(StoreError::Unavailable("the line to the store is broken".into()));
        match broken {
            Some(broken) if step == broken.steps && broken.fault == Fault::After => {
                work.await?;
                Err(lost())
            }
            Some(broken) if step == broken.steps || (step > broken.steps && broken.for_good) => Err(lost()),
            _ => work.await,
        }
    }
}

impl<E: Engine> Engine for Line<E> {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.engine.prepare().await
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        let loaded = self.step(self.engine.load(wants)).await;
        self.give_way().await;
        loaded
    }

    fn nature(&self) -> Nature {
        self.engine.nature()
    }

    fn follower(&self) -> Option<&Follower> {
        self.engine.follower()
    }

    async fn mend(&self, what: &Mend) -> Result<bool, StoreError> {
        self.engine.mend(what).await
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        self.give_way().await;
        let committed = self.step(self.engine.commit(seen, changes)).await;
        if matches!(committed, Err(CommitError::Conflict)) {
            self.conflicts.fetch_add(1, Ordering::SeqCst);
        }
        committed
    }

    async fn settle(&self, mark: Mark) -> Result<(), StoreError> {
        self.step(self.engine.settle(mark)).await
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        self.engine.scan(range, limit).await
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        self.engine.audit(tell).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.engine.ping().await
    }
}
