//! What a store must do, and the runner that turns commands into commits.
//!
//! An engine loads rows, commits changes atomically and scans pages in order. It never learns
//! what a like is.

pub mod clock;
pub mod due;
pub mod error;
pub mod faulty;
pub mod follow;
mod lease;
pub mod memory;
mod news;
pub mod recount;
pub mod runner;
mod together;

use std::future::Future;

use tally_core::rows::{Changes, EdgeKey, Key, OrderKey, Row, Side, TotalKey};
use tally_core::time::Stamp;
use tally_core::verify::Wrong;
use tally_core::view::{Reading, View, Wants};

pub use clock::{Clock, SystemClock};
pub use error::{CommitError, StoreError, TooLarge};
pub use follow::Follower;
pub use lease::Lease;
pub use news::{News, Topic};
pub use runner::{Failure, MadeDue, Runner, RunnerOptions, Settled};
pub use tally_core::range::{OrderFrom, Place, Range};
pub use together::Together;

/// A place in the store's history: everything that was visible at one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Mark(pub u64);

/// What [`Engine::load`] found, in the order of the wants.
#[derive(Clone, PartialEq, Debug)]
pub struct Loaded {
    /// The rows; none where there is none.
    pub rows: Vec<Option<Row>>,
    /// Totals; absent is 0.
    pub totals: Vec<i64>,
    /// How many rows stand before each point.
    pub ranks: Vec<u64>,
    /// Totals that came along unasked, as of the same moment: an edge that is there is mostly answered with its
    /// count.
    pub also: Vec<(TotalKey, i64)>,
    /// The moment at which all of this was true.
    pub mark: Mark,
    /// What the store's own clock said then. A store that several servers share always says it, even if nothing was
    /// wanted: their clocks may differ, and its is one.
    pub now: Option<Stamp>,
    /// The newest stamp that was committed until then, where the store's own clock may be behind it: it was set back, or
    /// another machine has taken over. Told at least with every job that was wanted, since a job ends what is older than it.
    pub newest: Option<Stamp>,
    /// Whether all of it was true at one moment. A store that has to ask in several places cannot say so; then answers
    /// are checked by a commit, even those that changed nothing.
    pub at_once: bool,
    /// The same, whether or not it is safe already: reads go by this.
    pub of_one_moment: bool,
}

impl Default for Loaded {
    fn default() -> Self {
        let (rows, totals, ranks, also) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self {
            rows,
            totals,
            ranks,
            also,
            mark: Mark::default(),
            now: None,
            newest: None,
            at_once: true,
            of_one_moment: true,
        }
    }
}

/// What the decisions of a batch stand on.
pub struct Seen<'a> {
    /// The moment of the oldest load.
    pub mark: Mark,
    /// The rows and totals, as they were loaded.
    pub view: &'a View,
}

/// A commit that was taken.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Committed {
    /// The moment right after it.
    pub mark: Mark,
    /// Each added total as it is now, in the order of the additions; `None` when it is what was
    /// loaded plus what was added.
    pub totals: Option<Vec<i64>>,
    /// How many stand before each place that was to be told, in the order of [`View::told_ranks`]; `None` when it is what
    /// was loaded, moved by what was changed.
    pub ranks: Option<Vec<u64>>,
    /// The first number that was taken of each sequence, in the order of [`Changes::numbers`].
    pub numbers: Vec<u64>,
}

/// A page of rows, in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// The rows.
    pub items: Vec<(Key, Row)>,
    /// Whether there are more.
    pub more: bool,
    /// The moment at which all of this was true.
    pub mark: Mark,
}

/// What an audit tells as it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// So many rows have been read.
    Progress(u64),
    /// A total that is not what its rows add up to, both as of one moment.
    Drift {
        /// The total.
        total: TotalKey,
        /// What it says.
        stored: i64,
        /// What its rows say.
        counted: i64,
    },
    /// An edge that does not stand in its lists, or a list entry without its edge.
    Stray {
        /// What was found, for people.
        found: String,
        /// The edge, where it is known and [`Mend::Lists`] can put it right.
        edge: Option<EdgeKey>,
    },
    /// Rows that do not agree with each other, as of one moment.
    Wrong(Wrong),
    /// An order that is not that of the rows in it. [`Mend::Order`] puts it right.
    Order {
        /// What was found, for people.
        found: String,
        /// Which order.
        order: OrderKey,
    },
    /// A part of a total that nobody adds up. [`Mend::Leftover`] takes it away.
    Leftover {
        /// What was found, for people.
        found: String,
        /// The total.
        total: TotalKey,
    },
}

/// What a store is like, so that it is asked in the way that suits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nature {
    /// How much a batch asks of it. [`Reading::Lean`] is for one whose commits always give the totals that they added to.
    pub reading: Reading,
    /// How batches are decided and committed side by side. More than one lane is for a store that finds conflicts between them
    /// as it does between servers.
    pub lanes: Lanes,
    /// Commands in one commit at most, for a store that serves nobody else meanwhile.
    pub batch_commands_max: usize,
    /// Whether other servers may be on the same store.
    pub is_shared: bool,
}

impl Default for Nature {
    /// One server, one batch after another.
    fn default() -> Self {
        let lanes = Lanes { count: 1, by: Side::Subject };
        Self { reading: Reading::Whole, lanes, batch_commands_max: usize::MAX, is_shared: false }
    }
}

/// What an audit found and a store can put right.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mend {
    /// The lists of an edge.
    Lists(EdgeKey),
    /// What is left of a total and counts nowhere.
    Leftover(TotalKey),
    /// An order, from its rows.
    Order(OrderKey),
}

/// Several batches at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lanes {
    /// How many.
    pub count: usize,
    /// Commands about one of these share a lane: a subject's, so that lanes hardly ever meet; or an object's, so
    /// that what a store keeps together is committed together.
    pub by: Side,
}

/// What an audit read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Audited {
    /// How many rows of every kind were read, edges among them.
    pub rows: u64,
    /// How many edges were read.
    pub edges: u64,
    /// How many totals were compared.
    pub totals: u64,
}

/// A store. Small and closed: everything that differs between stores is behind these calls.
pub trait Engine: Send + Sync + 'static {
    /// Creates, migrates or checks the store. Gives the newest stamp that it holds, so that time
    /// never runs backwards over a restart.
    fn prepare(&self) -> impl Future<Output = Result<Stamp, StoreError>> + Send;

    /// Every row and total asked for, as of one moment, or else it says so.
    fn load(&self, wants: &Wants) -> impl Future<Output = Result<Loaded, StoreError>> + Send;

    /// All or nothing. A conflict if a row, total or rank that was decided on has moved. When it
    /// returns, the changes are visible to the next load; [`Engine::settle`] says when they last.
    ///
    /// Each total that was added to is told as it is right after this commit and no other. An addition of 0 only asks for
    /// that. So is each rank that the view says ([`View::told_ranks`]). There may be nothing to write at all, and only
    /// something to check.
    ///
    /// Numbers that are taken of sequences follow the last ones that were committed: they are dense, in the order of commits, and
    /// taking them never conflicts. Rows carry them as [`Seq::Taken`](tally_core::rows::Seq), which the store fills in.
    fn commit(&self, seen: Seen<'_>, changes: &Changes) -> impl Future<Output = Result<Committed, CommitError>> + Send;

    /// Returns when everything that was visible at the mark is durable, or says that it is lost.
    fn settle(&self, mark: Mark) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// One page in order: the read side, which skips the queue.
    fn scan(&self, range: &Range, limit: usize) -> impl Future<Output = Result<Page, StoreError>> + Send;

    /// Recounts everything as of one moment, and tells what does not add up.
    fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send))
    -> impl Future<Output = Result<Audited, StoreError>> + Send;

    /// Whether the store answers and takes writes.
    fn ping(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// What the store is like.
    fn nature(&self) -> Nature {
        Nature::default()
    }

    /// What the servers on one store have in common; nothing where one server has it to itself. See [`Together`].
    fn follower(&self) -> Option<&Follower> {
        None
    }

    /// Puts right what an audit found. False where there is nothing to put right, or the store does not know how.
    fn mend(&self, _what: &Mend) -> impl Future<Output = Result<bool, StoreError>> + Send {
        async { Ok(false) }
    }

    /// Lets go of the store.
    fn close(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}
