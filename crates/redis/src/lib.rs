//! The store in Redis or Valkey, on one node or a Cluster, in structures that a user can read in redis-cli.
//!
//! | file | what it does |
//! |---|---|
//! | `keys.rs`, `counting.rs` | the key plan; where counting is kept |
//! | `options.rs`, `connection.rs` | the URL, connections, what an error means |
//! | `scripts/` | all that runs inside Redis; `scripts.rs` puts it together |
//! | `load.rs` | every row asked for |
//! | `plan.rs`, `counted.rs`, `bulk.rs`, `part.rs`, `commit.rs` | what a commit checks and changes; sending it |
//! | `fence.rs` | waiting until what is shown is safe |
//! | `transaction.rs`, `open.rs` | a commit over several slots; ending what another server left open |
//! | `numbered.rs`, `timekeeper.rs` | commits by number, so that what comes late is known; the one time of the store |
//! | `scan.rs`, `order_pages.rs`, `walk.rs` | pages, every row |
//! | `audit.rs`, `compare.rs`, `drift.rs` | the recount: of what there is, of lists, of numbers |
//! | `mend.rs` | putting right what the recount found |
//! | `registry.rs` | which relations and slots there are |
//! | `follow.rs` | what servers tell each other |
//! | `facts.rs` | what an operator wants to know, and what is refused |
//! | `rows.rs`, `words.rs`, `answer.rs`, `slots.rs` | rows as text, what is asked, what is answered, slots |

mod agree;
mod answer;
mod audit;
mod bulk;
mod commit;
mod compare;
mod connection;
mod counted;
mod drift;
mod due;
mod facts;
mod fence;
mod follow;
mod gaps;
mod keys;
mod load;
mod mend;
mod numbered;
mod open;
mod options;
mod order_pages;
mod ordered;
mod orders;
mod part;
mod places;
mod plan;
mod registry;
mod rows;
mod scan;
mod scripts;
mod slots;
mod timekeeper;
mod transaction;
mod walk;
mod words;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bulk::Listed;
use connection::Link;
use tally_core::rows::{Changes, Side};
use tally_core::time::Stamp;
use tally_core::view::{Reading, Wants};
use tally_engine::{
    Audited, CommitError, Committed, Engine, Finding, Follower, Lanes, Loaded, Mark, Mend, Nature, Page, Range, Seen,
    StoreError,
};

pub use facts::Facts;
use fence::Fence;
use keys::Keys;
use numbered::Numbers;
pub use options::Options;
use registry::Registry;
use scripts::Scripts;
pub use timekeeper::TimeApart;
use timekeeper::Timekeeper;
use walk::Remembered;

/// Commands in one commit: a few milliseconds of Redis' time.
const BATCH_COMMANDS_MAX: usize = 1_024;
/// How long a health check waits.
const PING_WITHIN: Duration = Duration::from_secs(2);

/// A store in Redis. Clones share it.
#[derive(Clone)]
pub struct Redis {
    keys: Keys,
    link: Arc<Link>,
    scripts: Arc<Scripts>,
    registry: Arc<Registry>,
    listed: Arc<Listed>,
    remembered: Arc<Remembered>,
    follower: Arc<Follower>,
    fence: Arc<Fence>,
    /// A number that no other server has.
    server: u64,
    numbers: Arc<Numbers>,
    timekeeper: Arc<Timekeeper>,
    /// Slots of commits that stand and are still to be finished.
    unfinished: Arc<AtomicU64>,
    stamp_wanted: Arc<AtomicU64>,
    stamp_raised: Arc<tokio::sync::Mutex<u64>>,
    /// Whether somebody is about to write it down again.
    stamp_pending: Arc<AtomicBool>,
    warned: Arc<AtomicBool>,
    /// Whether there was ever a suspension, a hidden edge or a correction.
    unusual: Arc<AtomicBool>,
}

impl Redis {
    /// A store that connects when it is first used.
    pub fn new(options: Options) -> Self {
        let server = RandomState::new().hash_one("tally");
        let keys = Keys::new(&options.prefix, options.cluster);
        let link = Arc::new(Link::new(options));
        let follower = Arc::new(Follower::new(follow::Publish::new(follow::Means {
            server: format!("{server:016x}"),
            keys: keys.clone(),
            link: link.clone(),
            here: scripts::here(),
            lease: scripts::lease(),
            watch: scripts::watch(),
        })));
        Self {
            keys,
            link,
            scripts: Arc::default(),
            registry: Arc::default(),
            listed: Arc::default(),
            remembered: Arc::default(),
            follower,
            fence: Arc::default(),
            server,
            numbers: Arc::default(),
            timekeeper: Arc::default(),
            unfinished: Arc::default(),
            stamp_wanted: Arc::default(),
            stamp_raised: Arc::default(),
            stamp_pending: Arc::default(),
            warned: Arc::default(),
            unusual: Arc::default(),
        }
    }

    /// How it was opened.
    pub fn options(&self) -> &Options {
        self.link.options()
    }

    /// Slots of commits of this server that stand and could not be reached yet to be finished.
    pub fn unfinished(&self) -> u64 {
        self.unfinished.load(Ordering::Relaxed)
    }

    /// Ends every commit that was left behind in some slot, whoever made it. Says in how many slots there was one.
    pub async fn drain(&self) -> Result<usize, StoreError> {
        self.resolve_all().await
    }

    /// Says good-bye to the other servers.
    pub async fn close(&self) {
        // A Redis that does not answer need not be waited for.
        let _ = tokio::time::timeout(PING_WITHIN, self.follower.leave()).await;
    }

    /// Whether nothing was ever done here that a plain like has to look for, as far as this server knows.
    fn is_usual(&self) -> bool {
        !self.keys.slots && !self.unusual.load(Ordering::Relaxed)
    }

    fn set_unusual(&self) {
        self.unusual.store(true, Ordering::Relaxed);
    }

    fn timeout(&self) -> Duration {
        self.link.options().timeout
    }
}

impl Engine for Redis {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.check().await
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        self.read(wants).await
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        self.write(&seen, changes).await
    }

    /// What was read or written is answered when it is as safe as Redis and the store's URL make it.
    async fn settle(&self, _mark: Mark) -> Result<(), StoreError> {
        self.fence().await
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        self.page(range, limit).await
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        self.recount(tell).await
    }

    async fn mend(&self, what: &Mend) -> Result<bool, StoreError> {
        match what {
            Mend::Lists(edge) => self.mend_edge(edge).await,
            // A total is in one place.
            Mend::Leftover(_) => Ok(false),
            Mend::Order(order) => self.mend_order(order).await,
        }
    }

    async fn ping(&self) -> Result<(), StoreError> {
        match tokio::time::timeout(PING_WITHIN, self.answers()).await {
            Ok(answer) => answer,
            Err(_) => Err(StoreError::Unavailable("Redis does not answer".into())),
        }
    }

    /// On a Cluster the likes of one object go together, since they are in one slot. A script has Redis to itself, so it is kept
    /// short.
    fn nature(&self) -> Nature {
        let by = if self.keys.slots { Side::Object } else { Side::Subject };
        let lanes = Lanes { count: self.options().lanes, by };
        Nature { reading: Reading::Counted, lanes, batch_commands_max: BATCH_COMMANDS_MAX, is_shared: true }
    }

    fn follower(&self) -> Option<&Follower> {
        Some(&self.follower)
    }
}
