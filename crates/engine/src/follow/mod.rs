//! What servers on one store tell each other: one task that listens, tells and holds leases, for every store that several
//! servers share.
//!
//! A server says which topics are watched on it, such as the counts of an object. Another one that changes something about one
//! tells so, at most every few milliseconds, and whoever hears it reads anew: so what is shown never runs backwards, however
//! many servers write. A message may be lost, with a connection or with the server that had it; when that is noticed,
//! everything watched is read again. What cannot be noticed is read again now and then, by whoever listens.
//!
//! With every beat a server also says what work it holds, and hears how many servers there are: so each knows its share of
//! the partitions of what is due, gives back what it has too many of and takes what is free. What a server that died held
//! lapses, and is taken by the others at their next beats.

mod notes;
mod share;
mod task;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use notes::{Ask, Shared};
use tally_core::rows::{Partitions, TotalKey, TotalOf};
use tokio::sync::{oneshot, watch};

use crate::{Lease, News, StoreError, Topic};

pub use share::Share;
use task::Task;

/// How a store lets servers talk.
pub trait Wire: Send + 'static {
    /// A connection that listens.
    type Line: Line;

    /// Begins to listen, at another place each time where there are several.
    fn connect(&mut self) -> impl Future<Output = Result<Self::Line, StoreError>> + Send;
}

/// A connection that listens, and what is said on it. A call that fails ends it.
pub trait Line: Send {
    /// Waits for a message; none when the connection is lost. It may be asked again after it was not waited for.
    fn hear(&mut self) -> impl Future<Output = Option<Heard>> + Send;

    /// Says every few seconds that this server is there, watches these topics and does this work.
    fn beat(&mut self, here: &Here<'_>) -> impl Future<Output = Result<Beat, StoreError>> + Send;

    /// Says which topics are watched here, and which of them nobody was told of before.
    fn watch(
        &mut self,
        watching: &BTreeSet<Topic>,
        new: &BTreeSet<Topic>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Tells every server, this one too: of these topics those that are for all and those that somebody watches.
    fn tell(&mut self, news: &News) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes pieces of work, or goes on holding them: the first ones that no other server has, so many at most. Gives those
    /// that this server has now. One call, however many there are.
    fn lease(&mut self, work: &[Lease], at_most: usize) -> impl Future<Output = Result<Vec<Lease>, StoreError>> + Send;

    /// Gives them back.
    fn release(&mut self, work: &[Lease]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Leaves in good order, so that nobody waits for this server.
    fn leave(&mut self, leases: &[Lease]) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// What a server says of itself.
pub struct Here<'a> {
    /// What is watched on it.
    pub watching: &'a BTreeSet<Topic>,
    /// The work that it holds, as far as it knows.
    pub leases: &'a [Lease],
    /// Whether it takes part in what is due.
    pub shares: bool,
}

/// What came over a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// What another server tells.
    News(News),
    /// Somebody watches something now.
    Watched,
    /// Nothing of interest.
    Nothing,
}

/// What a server learned when it said that it is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beat {
    /// Whether anybody may be watching anything.
    pub watched: bool,
    /// Whether a server has died, perhaps between a commit and its news.
    pub missed: bool,
    /// The work that is still held.
    pub leases: Vec<Lease>,
    /// This server's place among those that take part in what is due; of no account for one that does not.
    pub share: Share,
}

/// The handle of the task, which starts when it is first needed.
pub struct Follower {
    shared: Arc<Shared>,
    idle: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

impl Follower {
    /// A follower that has not begun.
    pub fn new(wire: impl Wire) -> Self {
        Self::start(wire, false)
    }

    /// One that begins to gather anew at every event, and so says nothing for as long as they come. Only for the
    /// simulator, which must find it.
    #[doc(hidden)]
    pub fn gathering_anew(wire: impl Wire) -> Self {
        Self::start(wire, true)
    }

    fn start(wire: impl Wire, gathers_anew: bool) -> Self {
        let shared = Arc::new(Shared::default());
        let task = Task::new(wire, shared.clone(), gathers_anew);
        Self { shared, idle: Mutex::new(Some(Box::pin(task.run()))) }
    }

    /// Takes a piece of work, or goes on holding it; false if another server has it.
    pub async fn lease(&self, work: Lease) -> Result<bool, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.ask(Ask::Lease(work, answer));
        answered.await.unwrap_or_else(|_| Err(down()))
    }

    /// Gives it back.
    pub fn release(&self, work: Lease) {
        self.ask(Ask::Release(work));
    }

    /// Takes part in what is due.
    pub fn share(&self) {
        self.ask(Ask::Share);
    }

    /// The partitions that this server has. None while it cannot be known.
    pub fn partitions(&self) -> watch::Receiver<Partitions> {
        self.shared.partitions.subscribe()
    }

    /// Says that these topics are watched here, or are no more.
    pub fn watch(&self, topics: Vec<Topic>, watched: bool) {
        self.begin();
        self.shared.watch(topics, watched);
    }

    /// Tells who watches one of them that these totals have changed.
    pub fn tell_changed(&self, totals: &[(TotalKey, i64)]) {
        // A like storm that nobody watches costs nothing here.
        if !self.shared.is_watched() {
            return;
        }
        let objects = totals.iter().filter_map(|(key, _)| match key.of() {
            TotalOf::Object(object, _) | TotalOf::Kind(object, ..) => Some(object),
            TotalOf::Subject(..) | TotalOf::Number(_) => None,
        });
        self.begin();
        self.shared.tell(News::of(objects.cloned().map(Topic::Counts)));
    }

    /// Tells every server that watches it, this one too.
    pub fn tell(&self, topic: Topic) {
        if topic.is_for_all() || self.shared.is_watched() {
            self.begin();
            self.shared.tell(News::of([topic]));
        }
    }

    /// Waits for news. For one listener.
    pub async fn news(&self) -> News {
        self.begin();
        self.shared.news().await
    }

    /// Whether the task has ended: by a panic, if nobody told it to. Then nothing is heard, told or leased any more.
    pub fn has_ended(&self) -> bool {
        self.shared.is_closed()
    }

    /// Ends the task, if it ever began.
    pub async fn leave(&self) {
        if self.idle.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            return;
        }
        let (left, leaving) = oneshot::channel();
        self.shared.ask(Ask::Leave(left));
        // The sender goes with the task, if not before.
        let _ = leaving.await;
    }

    fn ask(&self, ask: Ask) {
        self.begin();
        self.shared.ask(ask);
    }

    fn begin(&self) {
        if let Some(task) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take() {
            tokio::spawn(task);
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.shared.close();
    }
}

fn down() -> StoreError {
    StoreError::Unavailable("the connection that listens to other servers is down".into())
}
