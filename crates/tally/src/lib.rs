//! Tally as a library: open a store, apply commands, ask queries, watch counts.
//!
//! ```
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! use tally::{Options, Tally};
//!
//! let tally = Tally::open("memory:", Options::default()).await?;
//! let like = tally.relate("like", "post:42", "alice").await?;
//! assert!(like.changed && like.count == 1);
//! let again = tally.relate("like", "post:42", "alice").await?;
//! assert!(!again.changed && again.count == 1);
//! tally.close().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod copy;
mod engines;
mod error;
mod jobs;
mod keys;
mod live;
mod news;
mod read;
mod readable;
mod rooms;
mod teller;
mod ties;
mod verify;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use read::Reader;
use rooms::Rooms;
use tally_core::command::{Call, Command, Decided, Declare, Relate, Unrelate};
use tally_core::operation::Wakes;
use tally_core::reply::EdgeReply;
use tally_core::{Answer, Auth, Catalog, Name, ObjectId, Operation, Query, Question, SubjectId, Timestamp};
use tally_engine::due::{Bell, DueOptions, DueWork};
use tally_engine::{Clock, Engine, Runner, RunnerOptions, StoreError, SystemClock, Together, Topic};
use teller::Teller;
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinHandle;

pub use copy::{CopyError, CopyPhase, CopyProgress, CopyReport, copy, copy_rows};
pub use engines::{AnyEngine, Opening, redacted};
pub use error::Error;
use error::typed;
pub use keys::KeyRing;
pub use live::{Hub, Subscription};
pub use readable::Told;
pub use rooms::TicketWatch;
pub use tally_core as core;
pub use tally_core::rows::{DriftItem, VerifyReport};
pub use tally_embedded as embedded;
pub use tally_engine as engine;
pub use tally_postgres as postgres;
pub use tally_redis as redis;

/// How to open Tally.
#[derive(Clone, Default)]
pub struct Options {
    /// What is declared.
    pub catalog: Catalog,
    /// Bounds of the queue.
    pub runner: RunnerOptions,
    /// How the embedded store is opened.
    pub embedded: tally_embedded::Options,
    /// Live subscriptions at once; 0 stands for the default.
    pub subscriptions_max: usize,
    /// Told of every durable batch, for metrics.
    pub observer: Option<tally_engine::runner::Observer>,
    /// What time it is here; left out, the machine's clock.
    pub clock: Option<Arc<dyn Clock>>,
    /// How often to look for what other servers may have said in vain; left out, often enough that all of it is known
    /// within a minute.
    pub look_every: Option<Duration>,
    /// Wrong on purpose, so that the simulator can see that it is found: what is due goes by this server's own clock.
    #[doc(hidden)]
    pub looks_by_own_clock: bool,
}

/// An open Tally. Clones share it.
pub struct Tally<E: Engine = AnyEngine> {
    inner: Arc<Inner<E>>,
}

impl<E: Engine> Clone for Tally<E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<E: Engine> {
    engine: Arc<E>,
    clock: Arc<dyn Clock>,
    catalog: Arc<Catalog>,
    hub: Arc<Hub>,
    rooms: Arc<Rooms<E>>,
    new_job: Arc<Notify>,
    new_keys: Arc<Notify>,
    look_every: Option<Duration>,
    carries_jobs: Arc<AtomicBool>,
    /// The runner goes first when closing, so that what it accepted is answered.
    runner: std::sync::RwLock<Option<Runner>>,
    stop: watch::Sender<bool>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    /// Whether a task that somebody else polls has panicked.
    panicked: AtomicBool,
}

impl Tally {
    /// Opens a store by its URL: `embedded:PATH`, `postgres://…`, `redis://…`,
    /// `redis+cluster://…`, or `memory:` for tests.
    pub async fn open(url: &str, options: Options) -> Result<Self, Error> {
        let engine = Arc::new(Opening::parse(url)?.open(&options.embedded).await?);
        Self::on(engine, options).await
    }
}

impl<E: Engine> Tally<E> {
    /// Starts on a store that is at hand.
    pub async fn on(engine: Arc<E>, options: Options) -> Result<Self, Error> {
        engine.prepare().await?;
        copy::refuse_unfinished(&*engine).await?;
        let emptied = ties::refuse_changed(&*engine, &options.catalog).await?;
        let clock = options.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let watch = engine.is_shared().then(|| {
            let engine = engine.clone();
            let topics = |objects: Vec<ObjectId>| objects.into_iter().map(Topic::Counts).collect();
            Box::new(move |objects, watched| engine.watch(topics(objects), watched)) as live::Watch
        });
        let hub = Arc::new(Hub::new(options.subscriptions_max, watch));
        let catalog = Arc::new(options.catalog);
        let bell = Arc::new(Bell::new(catalog.clone()));
        let (stop, stopped) = watch::channel(false);
        let rooms = Arc::new(Rooms::new(engine.clone(), catalog.clone(), clock.clone(), stopped.clone()));
        let due_teller = Arc::new(Teller::default());
        let observer: tally_engine::runner::Observer = {
            let (hub, engine, bell, outer) = (hub.clone(), engine.clone(), bell.clone(), options.observer);
            let (rooms, due_teller) = (rooms.clone(), due_teller.clone());
            Arc::new(move |settled| {
                bell.hear(settled);
                rooms.hear(&settled.totals);
                if engine.is_shared() {
                    if bell.concerns_others(settled) {
                        due_teller.add(Topic::Due);
                    }
                    // Others commit too: the counts are read anew, so that nobody sees them run backwards.
                    engine.tell_changed(&settled.totals);
                } else {
                    hub.publish(&settled.totals);
                }
                if let Some(outer) = &outer {
                    outer(settled);
                }
            })
        };
        let (runner, running) =
            Runner::start(engine.clone(), catalog.clone(), clock.clone(), options.runner, observer).await?;
        // Before anything is counted: forgetting also looks at what is not declared any more.
        runner.apply(Call::system(Command::from(Declare))).await?.reply?;
        ties::rank_anew(&*engine, &runner, emptied).await?;
        let tally = Self {
            inner: Arc::new(Inner {
                engine: engine.clone(),
                clock: clock.clone(),
                catalog,
                hub,
                rooms: rooms.clone(),
                new_job: Arc::new(Notify::new()),
                new_keys: Arc::new(Notify::new()),
                look_every: options.look_every,
                carries_jobs: Arc::default(),
                runner: std::sync::RwLock::new(Some(runner.clone())),
                stop,
                tasks: Mutex::new(vec![running]),
                panicked: AtomicBool::new(false),
            }),
        };
        let mut tasks = tally.inner.tasks.lock().await;
        if engine.is_shared() {
            let follower = news::Follower {
                engine: engine.clone(),
                catalog: tally.inner.catalog.clone(),
                hub: tally.inner.hub.clone(),
                rooms: rooms.clone(),
                bell: bell.clone(),
                new_job: tally.inner.new_job.clone(),
                new_keys: tally.inner.new_keys.clone(),
                look_every: options.look_every,
            };
            tasks.push(tokio::spawn(follower.run(stopped.clone())));
            for (teller, every) in [(rooms.teller.clone(), teller::ROOMS_EVERY), (due_teller, teller::DUE_EVERY)] {
                let (engine, stopped) = (engine.clone(), stopped.clone());
                tasks.push(tokio::spawn(teller.run(engine, every, stopped)));
            }
        }
        let (carries, look_every) = (tally.inner.carries_jobs.clone(), options.look_every);
        let carrier = jobs::Carrier { engine: engine.clone(), runner: runner.clone(), look_every, carries };
        tasks.push(tokio::spawn(carrier.run(tally.inner.new_job.clone(), stopped.clone())));
        let (catalog, due) =
            (tally.inner.catalog.clone(), DueOptions { look_every, by_own_clock: options.looks_by_own_clock });
        let due = DueWork { engine, runner, clock, catalog, options: due, bell };
        tasks.push(tokio::spawn(due.run(stopped)));
        drop(tasks);
        tally.declare_rooms().await?;
        Ok(tally)
    }

    /// Applies one call: decided, durable, answered.
    pub async fn apply(&self, call: Call) -> Result<Decided, Error> {
        let Wakes { jobs: begins_job, keys: changes_keys } = call.command.wakes();
        let runner = self.runner()?;
        if !(begins_job || changes_keys) {
            return Ok(runner.apply(call).await?);
        }
        // A caller that goes away does not keep others from hearing of it.
        let tally = self.clone();
        let applying = tokio::spawn(async move {
            let decided = runner.apply(call).await;
            // Also when the answer was lost: it may have been done.
            if begins_job {
                tally.inner.new_job.notify_one();
                tally.inner.engine.tell(Topic::Jobs);
            }
            if changes_keys {
                tally.inner.new_keys.notify_one();
                tally.inner.engine.tell(Topic::Keys);
            }
            decided
        });
        let decided = applying.await.map_err(|error| StoreError::Broken(format!("a call ended early: {error}")))?;
        Ok(decided?)
    }

    /// Asks for something, as the system itself. What you ask with decides what you get.
    pub async fn ask<O: Operation>(&self, operation: O) -> Result<O::Reply, Error> {
        Ok(typed(self.apply(Call::system(operation)).await?.reply?)?)
    }

    /// Makes sure that an edge is there.
    pub async fn relate(&self, relation: &str, object: &str, subject: &str) -> Result<EdgeReply, Error> {
        let (relation, object, subject) = (Name::new(relation)?, ObjectId::new(object)?, SubjectId::new(subject)?);
        self.ask(Relate { relation, object, subject, kind: None, meta: None }).await
    }

    /// Makes sure that an edge is not there.
    pub async fn unrelate(&self, relation: &str, object: &str, subject: &str) -> Result<EdgeReply, Error> {
        let (relation, object, subject) = (Name::new(relation)?, ObjectId::new(object)?, SubjectId::new(subject)?);
        self.ask(Unrelate { relation, object, subject }).await
    }

    /// Answers a question. It skips the queue, and never shows what a crash could still take back.
    pub async fn query<Q: Question>(&self, question: &Q, auth: &Auth) -> Result<Q::Answer, Error> {
        self.reader(auth).read(|sight| question.read(sight)).await
    }

    /// The same for any of them.
    pub async fn answer(&self, query: &Query, auth: &Auth) -> Result<Answer, Error> {
        self.reader(auth).read(|sight| query.read(sight)).await
    }

    fn reader<'a>(&'a self, auth: &'a Auth) -> Reader<'a, E> {
        Reader { engine: &*self.inner.engine, catalog: &self.inner.catalog, auth, now: self.now() }
    }

    /// Whether whoever asks may read these edges and the counts that they are part of, as far as conditions go.
    pub async fn readable(&self, told: &[Told], auth: &Auth) -> Result<Vec<bool>, Error> {
        readable::readable(&*self.inner.engine, &self.inner.catalog, told, auth, self.now()).await
    }

    /// Follows the counts of some objects.
    pub fn watch(&self, objects: &[ObjectId], relations: &[Name]) -> Result<Subscription, Error> {
        self.inner.hub.subscribe(objects, relations)
    }

    /// Recounts everything here and now, reports what does not add up, and changes nothing. What also mends it is
    /// a job: [`Command::Verify`].
    pub async fn recount(&self, progress: impl FnMut(u64) + Send + 'static) -> Result<VerifyReport, Error> {
        Ok(verify::recount(self.inner.engine.clone(), progress).await?.report)
    }

    /// What is declared.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.inner.catalog
    }

    /// The store.
    pub fn engine(&self) -> &Arc<E> {
        &self.inner.engine
    }

    /// Live subscriptions.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.inner.hub
    }

    /// Commands that wait for the runner.
    pub fn waiting(&self) -> usize {
        self.runner().map_or(0, |runner| runner.waiting())
    }

    /// Whether this server carries the store's jobs; of several, one does.
    pub fn carries_jobs(&self) -> bool {
        self.inner.carries_jobs.load(Ordering::Relaxed)
    }

    /// Whether a part of this server has ended by a panic: then it does not do all that it should, and is to be restarted.
    pub fn has_ended_partly(&self) -> bool {
        let closing = *self.inner.stop.borrow();
        let tasks = self.inner.tasks.try_lock();
        let task_ended = tasks.is_ok_and(|tasks| tasks.iter().any(JoinHandle::is_finished));
        let lane_ended = self.runner().is_ok_and(|runner| runner.has_ended());
        let panicked = self.inner.panicked.load(Ordering::Relaxed);
        !closing && (task_ended || lane_ended || panicked || self.inner.engine.has_ended_partly())
    }

    /// Whether the store answers and takes writes.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.inner.engine.ping().await
    }

    /// The time with which the next command would be stamped.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Answers what was accepted, and closes the store.
    pub async fn close(&self) {
        self.inner.stop.send_replace(true);
        if let Ok(mut runner) = self.inner.runner.write() {
            runner.take();
        }
        for task in self.inner.tasks.lock().await.drain(..) {
            // A task that panicked has nothing left to close.
            let _ = task.await;
        }
        self.inner.rooms.close().await;
        self.inner.engine.close().await;
    }

    fn runner(&self) -> Result<Runner, Error> {
        let runner = self.inner.runner.read().ok().and_then(|runner| runner.clone());
        runner.ok_or(Error::Stopping)
    }
}
