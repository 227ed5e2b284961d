//! What a connection does, and how long it may go on doing it: to say nothing, to send its headers, to
//! stand idle, to leave its answers unread.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tally_settings::Bounds;
use tokio::sync::Notify;

use super::framing::Unfinished;
use super::memory::Memory;

/// The first part of what is unfinished, which is not counted.
const BYTES_FREE: usize = 4_096;

/// How long a connection whose time is over may still show that it has done what it should.
const SECOND_LOOK: Duration = Duration::from_millis(50);

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
    /// Bytes of what is not whole yet: a head, or a frame.
    unfinished_bytes: AtomicUsize,
    /// Which head is not whole yet, and since when; 0 where none is.
    head: AtomicU64,
    head_since_ms: AtomicU64,
    has_asked: AtomicBool,
    /// Requests whose answer is not ready.
    handled: AtomicUsize,
    /// Answers whose next part waits for the client to take the last one.
    offered: AtomicUsize,
    /// Answers whose next part waits for the server, as those of live streams do.
    made: AtomicUsize,
    /// When the present state began: idle, an answer that is not taken.
    since_ms: AtomicU64,
    /// Since when the socket takes no bytes; 0 while it does.
    blocked_ms: AtomicU64,
    is_unread: AtomicBool,
    is_leaving: AtomicBool,
    leave: Notify,
}

/// What is held beyond what everybody may: an ordinary request must not be turned away because others send large
/// ones. As many connections as there may be hold no more than this each.
fn counted(unfinished_bytes: usize) -> usize {
    unfinished_bytes.saturating_sub(BYTES_FREE)
}

impl Activity {
    /// A connection that has just been opened.
    pub fn new(memory: Arc<Memory>) -> Arc<Self> {
        Arc::new(Self {
            opened: Instant::now(),
            memory,
            unfinished_bytes: AtomicUsize::new(0),
            head: AtomicU64::new(0),
            head_since_ms: AtomicU64::new(0),
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

    /// Whether anything is done for it, rather than waiting for the client to take what it asked for.
    fn works(&self) -> bool {
        [&self.handled, &self.made].iter().any(|some| some.load(Ordering::Relaxed) > 0)
    }

    fn is_busy(&self) -> bool {
        [&self.handled, &self.offered, &self.made].iter().any(|some| some.load(Ordering::Relaxed) > 0)
    }

    /// So much has come that is not whole yet. False where there is no memory for it.
    pub fn set_unfinished(&self, unfinished: Unfinished) -> bool {
        let before = counted(self.unfinished_bytes.load(Ordering::Relaxed));
        let now = counted(unfinished.bytes);
        if now > before && !self.memory.take_head(now - before) {
            return false;
        }
        if now < before {
            self.memory.give_head(before - now);
        }
        self.unfinished_bytes.store(unfinished.bytes, Ordering::Relaxed);
        let head = unfinished.head.unwrap_or(0);
        if self.head.swap(head, Ordering::Relaxed) != head {
            self.head_since_ms.store(self.now_ms(), Ordering::Relaxed);
        }
        true
    }

    /// Whether some of a head has come, and not all of it.
    pub fn has_begun(&self) -> bool {
        self.head.load(Ordering::Relaxed) > 0
    }

    /// When it began to be what it is: idle, or sending a head. One that came behind a request before that was answered
    /// could not be read any sooner.
    fn since(&self) -> Duration {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        let head_since_ms = if self.has_begun() { self.head_since_ms.load(Ordering::Relaxed) } else { 0 };
        Duration::from_millis(since_ms.max(head_since_ms))
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
        let since = if has_asked { self.since() } else { Duration::ZERO };
        let is_free = !self.works() && !self.is_leaving.load(Ordering::Relaxed);
        (is_free && self.opened.elapsed() >= since + grace).then_some((has_asked, self.opened + since))
    }

    /// Asks the connection to make room for another.
    pub fn ask_to_leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
        self.leave.notify_one();
    }

    /// When it will be cut, and why, if nothing happens.
    fn deadline(&self, bounds: &Bounds) -> Option<(Duration, Cut)> {
        let blocked_ms = self.blocked_ms.load(Ordering::Relaxed);
        if blocked_ms > 0 {
            return Some((Duration::from_millis(blocked_ms) + bounds.request_timeout, Cut::Stalled));
        }
        if self.is_busy() {
            let waits_for_client = !self.works();
            let since = Duration::from_millis(self.since_ms.load(Ordering::Relaxed));
            return waits_for_client.then_some((since + bounds.request_timeout, Cut::Stalled));
        }
        Some(match (self.has_asked.load(Ordering::Relaxed), self.has_begun()) {
            (false, _) => (bounds.header_read_timeout, Cut::SlowHead),
            (true, false) => (self.since() + bounds.idle_timeout, Cut::Idle),
            (true, true) => (self.since() + bounds.header_read_timeout, Cut::SlowHead),
        })
    }

    /// Lets a connection go on until it has ended, or is to be ended.
    pub async fn watch<F: Future>(&self, bounds: &Bounds, mut work: Pin<&mut F>) -> Result<F::Output, Cut> {
        loop {
            let cut = tokio::select! {
                biased;
                done = work.as_mut() => return Ok(done),
                cut = self.outstayed(bounds) => cut,
            };
            if cut == Cut::Crowded {
                return Err(cut);
            }
            // Perhaps it was the server that was late, and what was sent in time has not been read yet.
            tokio::select! {
                biased;
                done = work.as_mut() => return Ok(done),
                () = tokio::time::sleep(SECOND_LOOK) => {}
            }
            if self.deadline(bounds).is_some_and(|(at, _)| at <= self.opened.elapsed()) {
                return Err(cut);
            }
        }
    }

    /// Waits until the connection is to be ended.
    async fn outstayed(&self, bounds: &Bounds) -> Cut {
        // No state that begins from now on can end sooner than this, so nobody has to wake the waiting.
        let soonest = bounds.header_read_timeout.min(bounds.idle_timeout).min(bounds.request_timeout);
        loop {
            let now = self.opened.elapsed();
            let until = match self.deadline(bounds) {
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
        self.memory.give_head(counted(*self.unfinished_bytes.get_mut()));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn unfinished(bytes: usize, head: u64) -> Unfinished {
        Unfinished { bytes, head: (head > 0).then_some(head) }
    }

    #[test]
    fn large_heads_hold_half_of_the_memory_and_ordinary_ones_always_fit() {
        let memory = Memory::new(100_000);
        let (one, other) = (Activity::new(memory.clone()), Activity::new(memory.clone()));
        assert!(one.set_unfinished(unfinished(BYTES_FREE + 30_000, 1)));
        assert!(other.set_unfinished(unfinished(BYTES_FREE + 20_000, 1)));
        assert_eq!(memory.held(), 50_000);
        assert!(!other.set_unfinished(unfinished(BYTES_FREE + 20_001, 1)), "half of it is for bodies");
        let ordinary = Activity::new(memory.clone());
        assert!(ordinary.set_unfinished(unfinished(BYTES_FREE, 1)));
        assert!(memory.take(50_000) && !memory.take(1));
        memory.give(50_000);
        // Whole, or a little of the next: what it held is given back.
        assert!(one.set_unfinished(unfinished(10, 2)));
        assert_eq!(memory.held(), 20_000);
        assert!(ordinary.set_unfinished(unfinished(BYTES_FREE + 30_000, 1)));
        drop((one, other, ordinary));
        assert_eq!(memory.held(), 0);
    }
}
