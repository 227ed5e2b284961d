//! What servers on one store tell each other: by publish and subscribe, which a Cluster passes on to all its
//! nodes.
//!
//! A server says whose counts are watched on it, for a few seconds at a time. Another one that changes such a
//! count publishes that, at most every few milliseconds, and whoever hears it reads the count anew. News may be
//! lost with a connection; then everything watched is read again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::Cmd;
use redis::aio::PubSub;
use tally_core::ObjectId;
use tally_core::rows::TotalKey;
use tally_engine::{Lease, News, StoreError};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::answer::{items, number, text};
use crate::connection::{Link, Script};
use crate::keys::Keys;
use crate::words::Ask;

/// News that gathers within this goes out together.
const GATHER: Duration = Duration::from_millis(20);
/// How often a server says that it is there.
const BEAT: Duration = Duration::from_secs(2);
/// How long work is held, and objects count as watched, without another word.
const HELD_FOR_MS: &str = "10000";
/// How soon a connection that was lost is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// Objects in one message.
const OBJECTS_AT_ONCE: usize = 500;

enum Asked {
    Attend(Vec<ObjectId>, bool),
    Changed(Vec<ObjectId>),
    Tell(&'static str),
    Lease(Lease, oneshot::Sender<Result<bool, StoreError>>),
    Release(Lease),
    Leave(oneshot::Sender<()>),
}

/// The handle of the task, which starts when it is first needed.
pub(crate) struct Follower {
    asks: mpsc::UnboundedSender<Asked>,
    idle: std::sync::Mutex<Option<Task>>,
    news: Mutex<mpsc::UnboundedReceiver<News>>,
}

/// What the task works with.
pub(crate) struct Means {
    pub(crate) server: String,
    pub(crate) keys: Keys,
    pub(crate) link: Arc<Link>,
    pub(crate) lease: Script,
    pub(crate) attend: Script,
}

impl Follower {
    pub(crate) fn new(means: Means) -> Self {
        let (asks, asked) = mpsc::unbounded_channel();
        let (tell, news) = mpsc::unbounded_channel();
        let task = Task {
            means,
            asked,
            news: tell,
            attended: BTreeSet::new(),
            unsaid: BTreeSet::new(),
            changed: BTreeSet::new(),
            others: BTreeSet::new(),
            leases: Vec::new(),
            node: 0,
        };
        Self { asks, idle: std::sync::Mutex::new(Some(task)), news: Mutex::new(news) }
    }

    fn ask(&self, ask: Asked) {
        if let Some(task) = self.idle.lock().ok().and_then(|mut idle| idle.take()) {
            tokio::spawn(task.run());
        }
        // The task ends only with this handle.
        let _ = self.asks.send(ask);
    }

    pub(crate) async fn lease(&self, work: Lease) -> Result<bool, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.ask(Asked::Lease(work, answer));
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(crate) fn release(&self, work: Lease) {
        self.ask(Asked::Release(work));
    }

    pub(crate) fn attend(&self, objects: Vec<ObjectId>, watched: bool) {
        self.ask(Asked::Attend(objects, watched));
    }

    pub(crate) fn tell_changed(&self, totals: &[(TotalKey, i64)]) {
        let objects = totals.iter().filter_map(|(key, _)| match key {
            TotalKey::Object { object, .. } | TotalKey::Kind { object, .. } => Some(object.clone()),
            _ => None,
        });
        self.ask(Asked::Changed(objects.collect()));
    }

    pub(crate) fn tell(&self, news: &News) {
        let word = match news {
            News::Keys => "keys",
            News::Jobs => "jobs",
            News::Counts(_) | News::Anything => "anything",
        };
        self.ask(Asked::Tell(word));
    }

    /// Ends the task, if it ever began.
    pub(crate) async fn leave(&self) {
        if self.idle.lock().is_ok_and(|idle| idle.is_some()) {
            return;
        }
        let (left, leaving) = oneshot::channel();
        self.ask(Asked::Leave(left));
        let _ = leaving.await;
    }

    pub(crate) async fn news(&self) -> News {
        match self.news.lock().await.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable("the connection that listens to Redis is down".into())
}

struct Task {
    means: Means,
    asked: mpsc::UnboundedReceiver<Asked>,
    news: mpsc::UnboundedSender<News>,
    /// Objects that are watched here.
    attended: BTreeSet<ObjectId>,
    /// Those of them that others do not know of yet.
    unsaid: BTreeSet<ObjectId>,
    /// Objects that changed here, not yet told.
    changed: BTreeSet<ObjectId>,
    /// Other news, not yet told.
    others: BTreeSet<&'static str>,
    /// Work that this server holds.
    leases: Vec<Lease>,
    /// Which node to listen to next.
    node: usize,
}

/// Why a turn of the task ended.
enum End {
    /// Nobody holds the store any more.
    Closed,
    /// The connection is lost.
    Lost,
}

impl Task {
    async fn run(mut self) {
        loop {
            let end = match self.listen().await {
                Ok(end) => end,
                Err(error) => {
                    tracing::warn!(%error, "listening to other servers failed; it is tried again");
                    End::Lost
                }
            };
            self.node += 1;
            if matches!(end, End::Closed) || self.wait().await {
                return;
            }
        }
    }

    /// Waits before the next attempt. True when nobody holds the store any more.
    async fn wait(&mut self) -> bool {
        let until = Instant::now() + RETRY;
        loop {
            tokio::select! {
                () = sleep_until(until) => return false,
                ask = self.asked.recv() => match ask {
                    None => return true,
                    Some(Asked::Leave(left)) => {
                        drop(left);
                        return true;
                    }
                    Some(Asked::Lease(_, answer)) => drop(answer.send(Err(gone()))),
                    Some(ask) => self.note(ask),
                },
            }
        }
    }

    /// Takes note of what has to be told or attended.
    fn note(&mut self, ask: Asked) {
        match ask {
            Asked::Attend(objects, true) => {
                self.unsaid.extend(objects.iter().cloned());
                self.attended.extend(objects);
            }
            Asked::Attend(objects, false) => objects.iter().for_each(|object| _ = self.attended.remove(object)),
            Asked::Changed(objects) => self.changed.extend(objects),
            Asked::Tell(word) => _ = self.others.insert(word),
            Asked::Release(work) => self.leases.retain(|held| *held != work),
            Asked::Lease(..) | Asked::Leave(_) => {}
        }
    }

    /// Subscribes at the next node that answers: of a Cluster one may be dead, and the others know everything.
    async fn subscribe(&mut self, channel: &str) -> Result<PubSub, StoreError> {
        let mut failed = gone();
        for _ in 0..self.means.link.options().nodes.len() {
            match self.subscribe_here(channel).await {
                Ok(hearing) => return Ok(hearing),
                Err(error) => failed = error,
            }
            self.node += 1;
        }
        Err(failed)
    }

    async fn subscribe_here(&self, channel: &str) -> Result<PubSub, StoreError> {
        let client = self.means.link.client(self.node)?;
        let subscribing = async {
            let mut hearing = client.get_async_pubsub().await?;
            hearing.subscribe(channel).await?;
            Ok::<_, redis::RedisError>(hearing)
        };
        let subscribed = tokio::time::timeout(self.means.link.options().timeout, subscribing).await;
        subscribed.map_err(|_| gone())?.map_err(|error| crate::connection::unavailable(&error))
    }

    async fn listen(&mut self) -> Result<End, StoreError> {
        let channel = format!("{}:news", self.means.keys.prefix);
        let mut hearing = self.subscribe(&channel).await?.into_on_message();
        // What was said while nobody listened is lost.
        let _ = self.news.send(News::Anything);
        self.unsaid.extend(self.attended.iter().cloned());
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut flush: Option<Instant> = None;
        loop {
            let due = flush.unwrap_or_else(|| Instant::now() + BEAT);
            tokio::select! {
                message = hearing.next() => match message {
                    Some(message) => self.hear(message.get_payload_bytes()),
                    None => return Ok(End::Lost),
                },
                _ = beat.tick() => self.beat().await?,
                () = sleep_until(due), if flush.is_some() => {
                    flush = None;
                    self.flush(&channel).await?;
                }
                ask = self.asked.recv() => match ask {
                    None => return Ok(End::Closed),
                    Some(Asked::Leave(left)) => {
                        for work in std::mem::take(&mut self.leases) {
                            self.hold(work, "0").await.ok();
                        }
                        drop(left);
                        return Ok(End::Closed);
                    }
                    Some(Asked::Lease(work, answer)) => {
                        let held = self.hold(work, HELD_FOR_MS).await;
                        if matches!(held, Ok(true)) && !self.leases.contains(&work) {
                            self.leases.push(work);
                        }
                        let _ = answer.send(held);
                    }
                    Some(Asked::Release(work)) => {
                        self.leases.retain(|held| *held != work);
                        self.hold(work, "0").await?;
                    }
                    Some(ask) => {
                        self.note(ask);
                        if !self.unsaid.is_empty() {
                            self.attend(false).await?;
                        }
                        if !(self.changed.is_empty() && self.others.is_empty()) {
                            flush.get_or_insert_with(|| Instant::now() + GATHER);
                        }
                    }
                },
            }
        }
    }

    fn hear(&self, message: &[u8]) {
        let message = String::from_utf8_lossy(message);
        let mut lines = message.lines();
        let news = match lines.next() {
            Some("keys") => News::Keys,
            Some("jobs") => News::Jobs,
            Some("counts") => News::Counts(lines.filter_map(|id| ObjectId::new(id).ok()).collect()),
            _ => News::Anything,
        };
        let _ = self.news.send(news);
    }

    /// Goes on holding what is held here.
    async fn beat(&mut self) -> Result<(), StoreError> {
        for work in self.leases.clone() {
            if !self.hold(work, HELD_FOR_MS).await? {
                self.leases.retain(|held| *held != work);
            }
        }
        self.attend(true).await
    }

    /// Says which objects are watched here: all of them, or those that were not said before.
    async fn attend(&mut self, all: bool) -> Result<(), StoreError> {
        let objects: Vec<ObjectId> = if all { &self.attended } else { &self.unsaid }.iter().cloned().collect();
        for objects in objects.chunks(OBJECTS_AT_ONCE) {
            let mut ask = Ask::new([self.watched()], &[HELD_FOR_MS]);
            objects.iter().for_each(|object| ask.words.push(object.as_str()));
            self.means.link.run(&self.means.attend, &ask).await?;
        }
        // Whoever watches has read already; what changed before the others knew is read again.
        if !self.unsaid.is_empty() {
            let _ = self.news.send(News::Counts(std::mem::take(&mut self.unsaid).into_iter().collect()));
        }
        Ok(())
    }

    fn watched(&self) -> String {
        self.means.keys.system("watched")
    }

    async fn hold(&self, work: Lease, for_ms: &str) -> Result<bool, StoreError> {
        let name = match work {
            Lease::Jobs => "lease:jobs",
            Lease::Setup => "lease:setup",
        };
        let ask = Ask::new([self.means.keys.system(name)], &[&self.means.server, for_ms]);
        Ok(number(Some(self.means.link.run(&self.means.lease, &ask).await?))? == 1)
    }

    /// Tells what gathered: of the counts, those that somebody watches.
    async fn flush(&mut self, channel: &str) -> Result<(), StoreError> {
        let publish = |message: String| {
            let mut command = Cmd::new();
            command.arg("PUBLISH").arg(channel).arg(message);
            command
        };
        for word in std::mem::take(&mut self.others) {
            self.means.link.send(&publish(word.into())).await?;
        }
        let changed: Vec<ObjectId> = std::mem::take(&mut self.changed).into_iter().collect();
        let mut command = Cmd::new();
        command.arg("ZCARD").arg(self.watched());
        if changed.is_empty() || number(Some(self.means.link.send(&command).await?))? == 0 {
            return Ok(());
        }
        for objects in changed.chunks(OBJECTS_AT_ONCE) {
            let mut command = Cmd::new();
            command.arg("ZMSCORE").arg(self.watched());
            objects.iter().for_each(|object| _ = command.arg(object.as_str()));
            let watched = items(self.means.link.send(&command).await?)?;
            let mut message = String::from("counts");
            for (object, score) in objects.iter().zip(watched) {
                if text(score)?.is_some() {
                    message += "\n";
                    message += object.as_str();
                }
            }
            if message.len() > "counts".len() {
                self.means.link.send(&publish(message)).await?;
            }
        }
        Ok(())
    }
}
