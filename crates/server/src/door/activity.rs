//! What a connection does, and how long it may go on doing it: to say nothing, to send its headers, to
//! stand idle, to leave its answers unread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::memory::Memory;
use crate::config::Limits;

/// The first part of a head, which is not counted.
const HEAD_BYTES_FREE: usize = 4_096;

/// Why a connection is ended by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It has not sent a whole request since it was opened, or sends the headers of the next one too slowly.
    SlowHead,
    /// It has stood idle.
    Idle,
    /// It does not read what it asked for.
    Stalled,
    /// Every place is taken, and this one does the least with its own.
    Crowded,
}

impl Cut {
    /// Its name, for counting.
    pub fn name(self) -> &'static str {
        match self {
            Cut::SlowHead => "slow_head",
            Cut::Idle => "idle",
            Cut::Stalled => "stalled",
            Cut::Crowded => "crowded",
        }
    }
}

/// One connection. Times are milliseconds since it was opened.
pub struct Activity {
    opened: Instant,
    memory: Arc<Memory>,
    /// Bytes of a head that is not whole yet.
    head_bytes: AtomicUsize,
    has_asked: AtomicBool,
    /// Requests whose answer is not ready.
    handled: AtomicUsize,
    /// Answers whose next part waits for the client to take the last one.
    offered: AtomicUsize,
    /// Answers whose next part waits for the server, as those of live streams do.
    made: AtomicUsize,
    /// When the present state began: idle, a head, an answer that is not taken.
    since_ms: AtomicU64,
    /// Since when the socket takes no bytes; 0 while it does.
    blocked_ms: AtomicU64,
    is_unread: AtomicBool,
    is_leaving: AtomicBool,
    leave: Notify,
}

/// What a head holds beyond what everybody may: an ordinary request must not be turned away because others send large
/// ones. As many connections as there may be hold no more than this each.
fn counted(head_bytes: usize) -> usize {
    head_bytes.saturating_sub(HEAD_BYTES_FREE)
}

impl Activity {
    /// A connection that has just been opened.
    pub fn new(memory: Arc<Memory>) -> Arc<Self> {
        Arc::new(Self {
            opened: Instant::now(),
            memory,
            head_bytes: AtomicUsize::new(0),
            has_asked: AtomicBool::new(false),
            handled: AtomicUsize::new(0),
            offered: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            since_ms: AtomicU64::new(0),
            blocked_ms: AtomicU64::new(0),
            is_unread: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            leave: Notify::new(),
        })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn touch(&self) {
        self.since_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    fn is_busy(&self) -> bool {
        [&self.handled, &self.offered, &self.made].iter().any(|some| some.load(Ordering::Relaxed) > 0)
    }

    /// Bytes have come. False where they are of a head and there is no memory for more of those.
    pub fn received(&self, bytes: usize) -> bool {
        if bytes == 0 || self.is_busy() {
            return true;
        }
        let before = self.head_bytes.load(Ordering::Relaxed);
        let counted = counted(before + bytes) - counted(before);
        if counted > 0 && !self.memory.take_head(counted) {
            return false;
        }
        if self.head_bytes.fetch_add(bytes, Ordering::Relaxed) == 0 {
            self.touch();
        }
        true
    }

    /// What came is no head, or the head is whole.
    pub fn head_ended(&self) {
        let counted = counted(self.head_bytes.swap(0, Ordering::Relaxed));
        if counted > 0 {
            self.memory.give_head(counted);
        }
    }

    /// Whether some of a head has come, and not all of it.
    pub fn has_begun(&self) -> bool {
        self.head_bytes.load(Ordering::Relaxed) > 0
    }

    /// The socket takes no bytes, or does again.
    pub fn set_blocked(&self, is_blocked: bool) {
        if !is_blocked {
            self.blocked_ms.store(0, Ordering::Relaxed);
        } else if self.blocked_ms.load(Ordering::Relaxed) == 0 {
            self.blocked_ms.store(self.now_ms().max(1), Ordering::Relaxed);
        }
    }

    /// The client is still sending what nobody will read.
    pub fn set_unread(&self) {
        self.is_unread.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub fn is_unread(&self) -> bool {
        self.is_unread.load(Ordering::Relaxed)
    }

    /// How dispensable the connection is: nothing where it is at work or was a moment ago. The least is the
    /// most dispensable: one that has never asked for anything, then the one that is idle for longest.
    pub fn dispensable(&self, grace: Duration) -> Option<(bool, Instant)> {
        let has_asked = self.has_asked.load(Ordering::Relaxed);
        let since = Duration::from_millis(if has_asked { self.since_ms.load(Ordering::Relaxed) } else { 0 });
        let is_free = !self.is_busy() && !self.is_leaving.load(Ordering::Relaxed);
        (is_free && self.opened.elapsed() >= since + grace).then_some((has_asked, self.opened + since))
    }

    /// Asks the connection to make room for another.
    pub fn ask_to_leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
        self.leave.notify_one();
    }

    /// When it will be cut, and why, if nothing happens.
    fn deadline(&self, limits: &Limits) -> Option<(Duration, Cut)> {
        let since = Duration::from_millis(self.since_ms.load(Ordering::Relaxed));
        let blocked_ms = self.blocked_ms.load(Ordering::Relaxed);
        if blocked_ms > 0 {
            return Some((Duration::from_millis(blocked_ms) + limits.request_timeout, Cut::Stalled));
        }
        if self.is_busy() {
            let waits_for_client = self.handled.load(Ordering::Relaxed) == 0 && self.made.load(Ordering::Relaxed) == 0;
            return waits_for_client.then_some((since + limits.request_timeout, Cut::Stalled));
        }
        Some(match (self.has_asked.load(Ordering::Relaxed), self.head_bytes.load(Ordering::Relaxed)) {
            (false, _) => (limits.header_read_timeout, Cut::SlowHead),
            (true, 0) => (since + limits.idle_timeout, Cut::Idle),
            (true, _) => (since + limits.header_read_timeout, Cut::SlowHead),
        })
    }

    /// Waits until the connection is to be ended.
    pub async fn outstayed(&self, limits: &Limits) -> Cut {
        // No state that begins from now on can end sooner than this, so nobody has to wake the waiting.
        let soonest = limits.header_read_timeout.min(limits.idle_timeout).min(limits.request_timeout);
        loop {
            let now = self.opened.elapsed();
            let until = match self.deadline(limits) {
                Some((at, cut)) if at <= now => return cut,
                Some((at, _)) => at.min(now + soonest),
                None => now + soonest,
            };
            tokio::select! {
                () = tokio::time::sleep_until((self.opened + until).into()) => {}
                () = self.leave.notified() => return Cut::Crowded,
            }
        }
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.head_ended();
    }
}

/// One request, from its head to the last byte of its answer.
pub struct Serving {
    activity: Arc<Activity>,
    stage: Stage,
}

/// Whom a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its handler.
    Handled,
    /// The client, to take a part of the answer.
    Offered,
    /// The server, to make a part of the answer.
    Made,
}

impl Serving {
    /// A whole head has come.
    pub fn begin(activity: Arc<Activity>) -> Self {
        activity.has_asked.store(true, Ordering::Relaxed);
        let serving = Self { activity, stage: Stage::Handled };
        serving.count().fetch_add(1, Ordering::Relaxed);
        serving.activity.head_ended();
        serving
    }

    fn count(&self) -> &AtomicUsize {
        match self.stage {
            Stage::Handled => &self.activity.handled,
            Stage::Offered => &self.activity.offered,
            Stage::Made => &self.activity.made,
        }
    }

    /// It waits for somebody else now.
    pub fn goes_to(&mut self, stage: Stage) {
        if stage == Stage::Offered {
            self.activity.touch();
        }
        if stage != self.stage {
            let before = self.count();
            before.fetch_sub(1, Ordering::Relaxed);
            self.stage = stage;
            self.count().fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.activity.touch();
        self.count().fetch_sub(1, Ordering::Relaxed);
    }
}
