//! What servers on one store tell each other: one task that listens, tells and holds leases, for every store that several
//! servers share.
//!
//! A server says whose counts are watched on it. Another one that changes such a count tells so, at most every few
//! milliseconds, and whoever hears it reads the count anew: so what is shown never runs backwards, however many servers
//! write. A message may be lost, with a connection or with the server that had it; when that is noticed, everything
//! watched is read again. What cannot be noticed is read again now and then, by whoever listens.

mod notes;
mod task;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tally_core::ObjectId;
use tally_core::rows::{TotalKey, TotalOf};
use tokio::sync::oneshot;

use crate::{Lease, News, StoreError};
use notes::{Ask, Shared};
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

    /// Says every few seconds that this server is there, watches these objects and does this work.
    fn beat(
        &mut self,
        watching: &BTreeSet<ObjectId>,
        leases: &[Lease],
    ) -> impl Future<Output = Result<Beat, StoreError>> + Send;

    /// Says which objects are watched here, and which of them nobody was told of before.
    fn watch(
        &mut self,
        watching: &BTreeSet<ObjectId>,
        new: &BTreeSet<ObjectId>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Tells every server, this one too: of these counts those that somebody watches, and each of the words.
    fn tell(
        &mut self,
        changed: &BTreeSet<ObjectId>,
        words: &BTreeSet<Word>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes a piece of work, or goes on holding it; false if another server has it.
    fn lease(&mut self, work: Lease) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Gives it back.
    fn release(&mut self, work: Lease) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Leaves in good order, so that nobody waits for this server.
    fn leave(&mut self, leases: &[Lease]) -> impl Future<Output = Result<(), StoreError>> + Send;
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
}

/// News in one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Word {
    /// API keys have changed.
    Keys,
    /// There is a new job.
    Jobs,
    /// Look at everything again.
    Anything,
}

impl Word {
    /// As it is sent.
    pub fn text(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Jobs => "jobs",
            Self::Anything => "anything",
        }
    }

    /// As it was sent.
    pub fn read(text: &str) -> Option<Self> {
        [Self::Keys, Self::Jobs, Self::Anything].into_iter().find(|word| word.text() == text)
    }

    /// What it says.
    pub fn news(self) -> News {
        match self {
            Self::Keys => News::Keys,
            Self::Jobs => News::Jobs,
            Self::Anything => News::Anything,
        }
    }
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

    /// Says that these objects are watched here, or are no more.
    pub fn watch(&self, objects: Vec<ObjectId>, watched: bool) {
        self.begin();
        self.shared.watch(objects, watched);
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
        self.shared.changed(objects.cloned());
    }

    /// Tells every server, this one too.
    pub fn tell(&self, news: News) {
        self.begin();
        match news {
            News::Counts(objects) => self.shared.changed(objects),
            News::Keys => self.shared.say(Word::Keys),
            News::Jobs => self.shared.say(Word::Jobs),
            News::Anything => self.shared.say(Word::Anything),
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
