//! An engine that stops between what is loaded and what is committed on it.

use std::sync::Arc;

use tally_core::rows::Changes;
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_engine::{
    Audited, CommitError, Committed, Engine, Finding, Follower, Loaded, Mark, Mend, Nature, Page, Range, Seen,
    StoreError,
};
use tokio::sync::Mutex;
use tokio::sync::oneshot::{Receiver, Sender, channel};

/// Stops once, each time that it is armed.
pub struct Stopping<E> {
    inner: Arc<E>,
    stop: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

/// Where it stops: says when it is there, and lets it go on.
pub struct Stop {
    /// It is there.
    pub reached: Receiver<()>,
    /// It goes on.
    pub go_on: Sender<()>,
}

impl<E> Stopping<E> {
    /// Not armed yet.
    pub fn new(inner: Arc<E>) -> Arc<Self> {
        Arc::new(Self { inner, stop: Mutex::new(None) })
    }

    /// The next commit stops before it is sent.
    pub async fn arm(&self) -> Stop {
        let ((reach, reached), (go_on, going)) = (channel(), channel());
        *self.stop.lock().await = Some((reach, going));
        Stop { reached, go_on }
    }
}

impl<E: Engine> Engine for Stopping<E> {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.inner.prepare().await
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        self.inner.load(wants).await
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        if let Some((reach, going)) = self.stop.lock().await.take() {
            reach.send(()).expect("somebody waits for it");
            going.await.expect("somebody lets it go on");
        }
        self.inner.commit(seen, changes).await
    }

    async fn settle(&self, mark: Mark) -> Result<(), StoreError> {
        self.inner.settle(mark).await
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
