//! A room that somebody here reads: its queue, its tickets, and who waits for news of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tally_core::Name;
use tally_core::reply::TicketReply;
use tally_core::room::rows::Phase;
use tally_core::room::{Facts, Pace, seal};
use tally_core::rows::{Seq, TicketState};
use tally_core::time::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::known::{Known, Tickets};
use super::queue::Queue;

/// A queue that could not be read for so long is not told from memory.
const FRESH_FOR: Duration = Duration::from_secs(3);
/// A room is followed for so long after somebody asked about it.
const READ_FOR: Duration = Duration::from_secs(30);

/// The room.
pub(super) struct Followed {
    pub(super) name: Name,
    pub(super) queue: RwLock<Option<Queue>>,
    tickets: Mutex<Tickets>,
    /// Something has happened to it.
    changed: Notify,
    /// And it was not read since: whoever asks next has it read first, so that what was answered here is seen here.
    stale: AtomicBool,
    /// Its version and whether it is open, at most once a second.
    pub(super) ticks: watch::Sender<(i64, bool)>,
    watches: AtomicUsize,
    /// Who waits for a ticket to leave the queue.
    waiting: Mutex<HashMap<u64, Vec<Arc<Notify>>>>,
    read_at: Mutex<Instant>,
    /// One reads it at a time.
    pub(super) reading: tokio::sync::Mutex<()>,
    /// How often somebody began to.
    pub(super) begun: AtomicU64,
}

/// What memory has to say about a ticket.
pub(super) enum Recalled {
    /// All.
    Told(Box<TicketReply>),
    /// It is behind what somebody knows already.
    Behind,
    /// Nothing: the store knows.
    Unknown,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Followed {
    pub(super) fn new(name: Name) -> Self {
        Self {
            name,
            queue: RwLock::default(),
            tickets: Mutex::default(),
            changed: Notify::new(),
            stale: AtomicBool::new(false),
            ticks: watch::Sender::new((-1, false)),
            watches: AtomicUsize::new(0),
            waiting: Mutex::default(),
            read_at: Mutex::new(Instant::now()),
            reading: tokio::sync::Mutex::default(),
            begun: AtomicU64::new(0),
        }
    }

    /// Something has happened to it.
    pub(super) fn change(&self) {
        self.stale.store(true, Ordering::SeqCst);
        self.changed.notify_one();
    }

    /// Waits until something has.
    pub(super) async fn has_changed(&self) {
        self.changed.notified().await;
    }

    /// It is about to be read: what happens from here on is not in it.
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.stale.store(false, Ordering::SeqCst);
    }

    /// Somebody asks about it.
    pub(super) fn touch(&self) {
        *lock(&self.read_at) = Instant::now();
    }

    pub(super) fn has_readers(&self) -> bool {
        self.watches.load(Ordering::SeqCst) > 0 || lock(&self.read_at).elapsed() < READ_FOR
    }

    /// A ticket from memory, of one moment. `now` is the time, where this server's clock is the store's.
    ///
    /// Every position that falls makes a version, and so a position is a matter of the version alone: nobody who has seen this
    /// version or an older one has seen a lower one.
    pub(super) fn recall(&self, ticket: &str, seen: Option<i64>, now: Option<Timestamp>) -> Recalled {
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = &*queue else { return Recalled::Unknown };
        let Some(seq) = seal::open(&queue.room.secret, ticket) else { return Recalled::Unknown };
        let now = now.unwrap_or_else(|| queue.now());
        let mut tickets = lock(&self.tickets);
        let Some(known) = tickets.get(seq).filter(|known| known.until > now) else { return Recalled::Unknown };
        let ahead = match queue.ahead(seq) {
            Some(ahead) => ahead,
            // Of many that have just joined, the first has the room read for all.
            None if queue.is_before(seq) => return Recalled::Behind,
            None => return Recalled::Unknown,
        };
        let behind = queue.version < known.told.max(seen.unwrap_or(known.told));
        if behind || self.stale.load(Ordering::SeqCst) || queue.read_at.elapsed() > FRESH_FOR {
            return Recalled::Behind;
        }
        known.told = queue.version;
        let known = known.clone();
        drop(tickets);
        Recalled::Told(Box::new(self.reply(queue, seq, known, ahead, now)))
    }

    fn reply(&self, queue: &Queue, seq: u64, known: Known, ahead: u64, now: Timestamp) -> TicketReply {
        let Known { subject, joined_at, since, until, told: _ } = known;
        let pace = Pace::of(&queue.room, queue.gate.as_ref(), now);
        let secret = queue.room.secret.clone();
        let facts =
            Facts { is_new: false, goes_straight_in: false, seq: Seq::Given(seq), secret, pace, now, since, until };
        let reply = TicketReply {
            room: self.name.clone(),
            ticket: String::new(),
            subject,
            seq,
            state: TicketState::Waiting,
            position: None,
            ahead: None,
            version: queue.version,
            eta_ms: None,
            eta_range_ms: None,
            poll_after_ms: 0,
            joined_at,
            claim_by: None,
            facts: Box::new(facts),
        };
        reply.moved(Some(ahead), queue.version)
    }

    /// Takes note of a ticket as the store told it. Says whether the queue is behind that.
    pub(super) fn note(&self, reply: &TicketReply) -> bool {
        lock(&self.tickets).note(reply);
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        queue.as_ref().is_some_and(|queue| queue.version < reply.version)
    }

    /// How long a ticket lives without a sign of life, once that is known.
    pub(super) fn idle_ttl(&self) -> Option<Duration> {
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        queue.as_ref().map(|queue| Duration::from_millis(queue.room.settings.idle_ttl_ms))
    }

    /// Tells those who watch that there is something new; for once a second.
    pub(super) fn tick(&self) {
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        let now = queue.as_ref().map_or((-1, false), |queue| (queue.version, queue.room.phase == Phase::Open));
        self.ticks.send_if_modified(|last| std::mem::replace(last, now) != now);
    }

    /// Tells those who watch one of these tickets that it has left the queue.
    pub(super) fn wake(&self, left: &[u64]) {
        let waiting = lock(&self.waiting);
        if !waiting.is_empty() {
            left.iter().filter_map(|seq| waiting.get(seq)).flatten().for_each(|watcher| watcher.notify_one());
        }
    }

    /// Watches a ticket, for as long as what is given lives.
    pub(super) fn watch(self: &Arc<Self>, seq: u64) -> Watching {
        self.watches.fetch_add(1, Ordering::SeqCst);
        let left = Arc::new(Notify::new());
        lock(&self.waiting).entry(seq).or_default().push(left.clone());
        Watching { ticks: self.ticks.subscribe(), followed: self.clone(), seq, left }
    }
}

/// Somebody watches a ticket.
pub(super) struct Watching {
    pub(super) followed: Arc<Followed>,
    pub(super) ticks: watch::Receiver<(i64, bool)>,
    /// It has left the queue.
    pub(super) left: Arc<Notify>,
    seq: u64,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut waiting = lock(&self.followed.waiting);
        if let Some(watchers) = waiting.get_mut(&self.seq) {
            watchers.retain(|watcher| !Arc::ptr_eq(watcher, &self.left));
            if watchers.is_empty() {
                waiting.remove(&self.seq);
            }
        }
        drop(waiting);
        self.followed.touch();
        self.followed.watches.fetch_sub(1, Ordering::SeqCst);
    }
}
