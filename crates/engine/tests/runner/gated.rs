//! An engine on which every commit and every settlement waits until a test lets it through.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tally_core::rows::{Changes, Key};
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_engine::memory::Memory;
use tally_engine::{
    Audited, CommitError, Committed, Engine, Finding, Follower, Loaded, Mark, Mend, Nature, Page, Range, Seen,
    StoreError,
};
use tokio::sync::{Semaphore, watch};

/// A place where work waits. Open until it is closed.
pub(crate) struct Gate {
    permits: Semaphore,
    arrived: watch::Sender<usize>,
}

const OPEN: usize = 1 << 20;

impl Default for Gate {
    fn default() -> Self {
        Self { permits: Semaphore::new(OPEN), arrived: watch::Sender::default() }
    }
}

impl Gate {
    pub(crate) fn close(&self) {
        self.permits.forget_permits(OPEN);
    }

    pub(crate) fn open(&self) {
        self.permits.add_permits(OPEN);
    }

    /// Lets one through.
    pub(crate) fn let_one_through(&self) {
        self.permits.add_permits(1);
    }

    /// How many have come here, through or not.
    pub(crate) fn arrived(&self) -> usize {
        *self.arrived.borrow()
    }

    /// Waits until so many have come here since the beginning.
    pub(crate) async fn has_seen(&self, many: usize) {
        self.arrived.subscribe().wait_for(|seen| *seen >= many).await.expect("the gate outlives the test");
    }

    async fn pass(&self) {
        self.arrived.send_modify(|seen| *seen += 1);
        self.permits.acquire().await.expect("a gate is never torn down").forget();
    }
}

type Meddler = Box<dyn FnMut(&Memory) + Send>;

/// The oracle behind gates, and in front of a meddler.
#[derive(Default)]
pub(crate) struct Gated {
    pub(crate) memory: Memory,
    pub(crate) loads: Gate,
    pub(crate) commits: Gate,
    pub(crate) settles: Gate,
    /// So many commits are refused with a conflict, whatever they hold.
    pub(crate) conflicts: AtomicU64,
    /// A commit that touches this row is refused with a conflict, always.
    pub(crate) contested: Mutex<Option<Key>>,
    /// Runs once between the next load and its commit, as another server would.
    pub(crate) meddler: Mutex<Option<Meddler>>,
    /// The marks that were settled, in order.
    pub(crate) settled: Mutex<Vec<Mark>>,
}

impl Engine for Gated {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.memory.prepare().await
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        self.loads.pass().await;
        self.memory.load(wants).await
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        self.commits.pass().await;
        if let Some(mut meddler) = self.meddler.lock().expect("no panic").take() {
            meddler(&self.memory);
        }
        let unlucky =
            self.conflicts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let contested = self.contested.lock().expect("no panic").clone();
        if unlucky || changes.rows.iter().any(|(key, _)| Some(key) == contested.as_ref()) {
            return Err(CommitError::Conflict);
        }
        self.memory.commit(seen, changes).await
    }

    async fn settle(&self, mark: Mark) -> Result<(), StoreError> {
        self.settles.pass().await;
        self.settled.lock().expect("no panic").push(mark);
        self.memory.settle(mark).await
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        self.memory.scan(range, limit).await
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        self.memory.audit(tell).await
    }

    fn nature(&self) -> Nature {
        self.memory.nature()
    }

    fn follower(&self) -> Option<&Follower> {
        self.memory.follower()
    }

    async fn mend(&self, what: &Mend) -> Result<bool, StoreError> {
        self.memory.mend(what).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.memory.ping().await
    }
}
