//! A server that does what is due, on a runtime of its own: it can end as a machine does that loses its power.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tally_core::rows::{Changes, Key, Partitions};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::Wants;
use tally_engine::due::{Bell, DueOptions, DueWork};
use tally_engine::{
    Audited, Clock, CommitError, Committed, Engine, Finding, Follower, Loaded, Mark, Nature, Page, Range, Runner,
    RunnerOptions, Seen, StoreError, SystemClock, Together,
};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::EngineFactory;
use crate::sample::catalog;
use crate::stand::Stand;

/// How often it looks for what others have made.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Long after this it cannot be that it is only slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// A clock that is wrong by so much.
#[derive(Clone, Copy)]
pub(super) struct Off(pub(super) i64);

impl Clock for Off {
    fn now(&self) -> Timestamp {
        Timestamp(SystemClock.now().0.saturating_add_signed(self.0))
    }
}

/// A store as one server sees it, which writes down what it took away.
pub(super) struct Recording<E> {
    pub(super) engine: Arc<E>,
    gone: Mutex<Vec<Key>>,
}

impl<E> Recording<E> {
    /// Everything that was taken away here, in order.
    pub(super) fn gone(&self) -> Vec<Key> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<E: Engine> Engine for Recording<E> {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.engine.prepare().await
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        self.engine.load(wants).await
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        let committed = self.engine.commit(seen, changes).await?;
        let gone = changes.rows.iter().filter(|(_, change)| change.before.is_some() && change.after.is_none());
        let mut all = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(gone.map(|(key, _)| key.clone()));
        Ok(committed)
    }

    async fn settle(&self, mark: Mark) -> Result<(), StoreError> {
        self.engine.settle(mark).await
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

    fn nature(&self) -> Nature {
        self.engine.nature()
    }

    fn follower(&self) -> Option<&Follower> {
        self.engine.follower()
    }
}

/// The server.
pub(super) struct Worker<E: Engine> {
    runtime: Runtime,
    pub(super) engine: Arc<Recording<E>>,
    stop: watch::Sender<bool>,
}

impl<E: Engine> Worker<E> {
    pub(super) async fn start<F: EngineFactory<Engine = E>>(stand: &Arc<Stand<F>>, clock: Off) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime starts");
        let (stop, stopped) = watch::channel(false);
        let stand = stand.clone();
        let starting = runtime.spawn(async move {
            let engine = Arc::new(Recording { engine: stand.open().await, gone: Mutex::default() });
            let (catalog, options) = (catalog(), RunnerOptions::default());
            let bell = Arc::new(Bell::new(catalog.clone()));
            let started = Runner::start(engine.clone(), catalog.clone(), clock, options, Arc::new(|_| {})).await;
            let (runner, _) = started.expect("a runner starts on an engine that was prepared");
            let options = DueOptions { look_every: Some(LOOK_EVERY), by_own_clock: false };
            let work = DueWork { engine: engine.clone(), runner, clock: Arc::new(clock), catalog, options, bell };
            tokio::spawn(work.run(stopped));
            engine
        });
        let engine = starting.await.expect("a server starts");
        Self { runtime, engine, stop }
    }

    pub(super) fn held(&self) -> Partitions {
        *self.engine.partitions().borrow()
    }

    /// Ends without a word, with everything that it was doing.
    pub(super) fn die(self) {
        self.runtime.shutdown_background();
    }

    /// Ends in good order.
    pub(super) async fn leave(self) {
        self.stop.send_replace(true);
        if let Some(follower) = self.engine.follower() {
            follower.leave().await;
        }
        self.runtime.shutdown_background();
    }
}

/// Waits until all of them have their shares: each partition is one server's, and nobody has two more than another.
pub(super) async fn shared<E: Engine>(workers: &[Worker<E>]) {
    until("the partitions are shared", async || {
        let held: Vec<Partitions> = workers.iter().map(Worker::held).collect();
        let sum: u32 = held.iter().map(|some| some.len()).sum();
        let all = held.iter().fold(Partitions::NONE, |all, some| all.with(*some));
        let (least, most) = (held.iter().map(|some| some.len()).min(), held.iter().map(|some| some.len()).max());
        all == Partitions::ALL && sum == all.len() && most <= least.map(|least| least + 1)
    })
    .await;
}

/// Asks again until it is so. It does not matter how long that takes, as long as it comes to an end.
pub(super) async fn until(what: &str, so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "in vain: {what}");
}
