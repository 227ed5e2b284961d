//! A store that counts how often it is asked, and a room on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tally::core::query::{RoomQuery, TicketQuery};
use tally::core::reply::TicketReply;
use tally::core::room::{Join, Mode, RoomSettings};
use tally::core::rows::{Changes, Key};
use tally::core::time::{Stamp, Timestamp};
use tally::core::view::Wants;
use tally::core::{Auth, Name, SubjectId};
use tally::engine::{
    Audited, Clock, CommitError, Committed, Engine, Finding, Follower, Loaded, Mark, Mend, Nature, Page, Range, Seen,
    StoreError, SystemClock,
};
use tally::{AnyEngine, Opening, Options, Tally};

/// Counts what is read.
pub(crate) struct Counting {
    inner: AnyEngine,
    loads: AtomicU64,
    ticket_loads: AtomicU64,
}

impl Counting {
    pub(crate) async fn open(url: &str) -> Arc<Self> {
        let inner = Opening::parse(url).unwrap().open(&tally::embedded::Options::default()).await.unwrap();
        Arc::new(Self { inner, loads: AtomicU64::new(0), ticket_loads: AtomicU64::new(0) })
    }

    /// All reads until now.
    pub(crate) fn loads(&self) -> u64 {
        self.loads.load(Ordering::SeqCst)
    }

    /// Those of them that were about tickets.
    pub(crate) fn ticket_loads(&self) -> u64 {
        self.ticket_loads.load(Ordering::SeqCst)
    }
}

impl Engine for Counting {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.inner.prepare().await
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let of_tickets = wants.rows.iter().any(|key| matches!(key, Key::Ticket(_)));
        self.ticket_loads.fetch_add(u64::from(of_tickets), Ordering::SeqCst);
        self.inner.load(wants).await
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
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

/// A clock that somebody sets forward.
#[derive(Clone, Default)]
pub(crate) struct Moved(Arc<AtomicU64>);

impl Moved {
    pub(crate) fn forward(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus_ms(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn app() -> Auth {
    Arc::new(serde_json::json!({"kind": "key"}))
}

/// A room in which everybody waits until somebody lets them in.
pub(crate) fn held() -> RoomSettings {
    RoomSettings { mode: Mode::Hold, capacity: 1_000_000, idle_ttl_ms: 86_400_000, ..RoomSettings::default() }
}

pub(crate) async fn on<E: Engine>(engine: &Arc<E>) -> Tally<E> {
    Tally::on(engine.clone(), Options::default()).await.unwrap()
}

pub(crate) async fn join<E: Engine>(tally: &Tally<E>, room: &str, who: &str) -> TicketReply {
    let (room, subject) = (name(room), Some(SubjectId::new(who).unwrap()));
    let join = Join { room, subject, token: None, fresh: String::new(), ip: None };
    tally.join(join, &app()).await.unwrap()
}

/// As the store says.
pub(crate) async fn stored<E: Engine>(tally: &Tally<E>, ticket: &TicketReply) -> TicketReply {
    let query = TicketQuery { room: ticket.room.clone(), ticket: ticket.ticket.clone() };
    tally.query(&query, &app()).await.unwrap()
}

pub(crate) async fn version<E: Engine>(tally: &Tally<E>, room: &str) -> i64 {
    tally.query(&RoomQuery { room: name(room) }, &app()).await.unwrap().version
}

pub(crate) async fn poll<E: Engine>(tally: &Tally<E>, ticket: &TicketReply, seen: Option<i64>) -> TicketReply {
    tally.ticket(&ticket.room, &ticket.ticket, seen, &app()).await.unwrap()
}

/// Polls until it is answered from memory.
pub(crate) async fn warm<E: Engine>(tally: &Tally<E>, ticket: &TicketReply) {
    let before = tally.polls_from_memory();
    while tally.polls_from_memory() == before {
        poll(tally, ticket, None).await;
        tokio::task::yield_now().await;
    }
}
