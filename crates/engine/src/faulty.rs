//! An engine that fails on purpose: at the Nth step, in each way that a real store can.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tally_core::rows::Changes;
use tally_core::time::Stamp;
use tally_core::view::Wants;

use crate::{
    Audited, CommitError, Committed, Engine, Finding, Follower, Loaded, Mark, Mend, Nature, Page, Range, Seen,
    StoreError,
};

/// How a step fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is refused, and nothing was done.
    Before,
    /// It was done, and the answer was lost.
    After,
}

/// Wraps an engine and fails its Nth step. Steps are loads, commits and settlements.
pub struct Faulty<E> {
    inner: Arc<E>,
    steps_left: AtomicI64,
    fault: Fault,
}

impl<E: Engine> Faulty<E> {
    /// Fails the step with this number, from 0; every other step goes through.
    pub fn new(inner: Arc<E>, step: u32, fault: Fault) -> Self {
        Self { inner, steps_left: AtomicI64::new(i64::from(step)), fault }
    }

    /// Whether the fault has happened.
    pub fn has_failed(&self) -> bool {
        self.steps_left.load(Ordering::SeqCst) < 0
    }

    async fn step<T, X: From<StoreError>>(&self, work: impl Future<Output = Result<T, X>>) -> Result<T, X> {
        let failing = self.steps_left.fetch_sub(1, Ordering::SeqCst) == 0;
        let lost = || X::from(StoreError::Unavailable("a fault was asked for here".into()));
        match (failing, self.fault) {
            (false, _) => work.await,
            (true, Fault::Before) => Err(lost()),
            (true, Fault::After) => {
                work.await?;
                Err(lost())
            }
        }
    }
}

impl<E: Engine> Engine for Faulty<E> {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.inner.prepare().await
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        self.step(self.inner.load(wants)).await
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        self.step(self.inner.commit(seen, changes)).await
    }

    async fn settle(&self, mark: Mark) -> Result<(), StoreError> {
        self.step(self.inner.settle(mark)).await
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        self.inner.scan(range, limit).await
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        self.inner.audit(tell).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.inner.ping().await
    }

    fn nature(&self) -> Nature {
        self.inner.nature()
    }

    fn follower(&self) -> Option<&Follower> {
        self.inner.follower()
    }

    async fn mend(&self, what: &Mend) -> Result<bool, StoreError> {
        self.inner.mend(what).await
    }
}
