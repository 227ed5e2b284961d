//! How servers on one Redis talk: by publish and subscribe, which a Cluster passes on to all its nodes.
//!
//! What is said when, and what becomes of it when the connection is lost, is the same on every store: see
//! [`tally_engine::follow`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::Cmd;
use redis::aio::{PubSub, PubSubStream};
use tally_core::ObjectId;
use tally_engine::follow::{Beat, Heard, Line, Wire, Word};
use tally_engine::{Lease, News, StoreError};
use tokio::time::Instant;

use crate::answer::{items, number, text};
use crate::connection::{Link, Script};
use crate::keys::Keys;
use crate::words::Ask;

/// How long work is held, and objects count as watched, without another word.
const HELD_FOR_MS: &str = "10000";
/// After how long without even its own words a subscription counts as dead.
const DEAF_AFTER: Duration = Duration::from_secs(10);
/// Objects in one message.
const OBJECTS_AT_ONCE: usize = 500;
/// What a server says to itself, to know that it hears.
const HERE: &str = "here";

/// What the task works with.
pub(crate) struct Means {
    pub(crate) server: String,
    pub(crate) keys: Keys,
    pub(crate) link: Arc<Link>,
    pub(crate) lease: Script,
    pub(crate) watch: Script,
}

/// Where to listen.
pub(crate) struct Publish {
    means: Arc<Means>,
    /// Which node to listen to next.
    node: usize,
}

impl Publish {
    pub(crate) fn new(means: Means) -> Self {
        Self { means: Arc::new(means), node: 0 }
    }
}

/// A subscription.
pub(crate) struct Subscribed {
    means: Arc<Means>,
    hearing: PubSubStream,
    heard_at: Instant,
}

impl Wire for Publish {
    type Line = Subscribed;

    /// Subscribes at the next node that answers: of a Cluster one may be dead, and the others know everything.
    async fn connect(&mut self) -> Result<Subscribed, StoreError> {
        let mut failed = unavailable();
        for _ in 0..self.means.link.options().nodes.len() {
            let node = self.node;
            self.node += 1;
            match self.subscribe(node).await {
                Ok(hearing) => {
                    let (means, hearing) = (self.means.clone(), hearing.into_on_message());
                    return Ok(Subscribed { means, hearing, heard_at: Instant::now() });
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl Publish {
    async fn subscribe(&self, node: usize) -> Result<PubSub, StoreError> {
        let client = self.means.link.client(node)?;
        let subscribing = async {
            let mut hearing = client.get_async_pubsub().await?;
            hearing.subscribe(self.means.channel()).await?;
            Ok::<_, redis::RedisError>(hearing)
        };
        let subscribed = tokio::time::timeout(self.means.link.options().timeout, subscribing).await;
        subscribed.map_err(|_| unavailable())?.map_err(|error| crate::connection::unavailable(&error))
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("the connection that listens to Redis is down".into())
}

impl Means {
    fn channel(&self) -> String {
        format!("{}:news", self.keys.prefix)
    }

    fn watched(&self) -> String {
        self.keys.system("watched")
    }

    async fn publish(&self, message: &str) -> Result<(), StoreError> {
        let mut command = Cmd::new();
        command.arg("PUBLISH").arg(self.channel()).arg(message);
        self.link.send(&command).await?;
        Ok(())
    }

    /// Says that these are watched. Gives how many of them nobody knew to be.
    async fn watch(&self, objects: &BTreeSet<ObjectId>) -> Result<i64, StoreError> {
        let mut new = 0;
        let objects: Vec<&ObjectId> = objects.iter().collect();
        for objects in objects.chunks(OBJECTS_AT_ONCE) {
            let mut ask = Ask::new([self.watched()], &[HELD_FOR_MS]);
            objects.iter().for_each(|object| ask.words.push(object.as_str()));
            new += number(Some(self.link.run(&self.watch, &ask).await?))?;
        }
        Ok(new)
    }

    async fn hold(&self, work: Lease, for_ms: &str) -> Result<bool, StoreError> {
        let name = match work {
            Lease::Jobs => "lease:jobs",
            Lease::Setup => "lease:setup",
        };
        let ask = Ask::new([self.keys.system(name)], &[&self.server, for_ms]);
        Ok(number(Some(self.link.run(&self.lease, &ask).await?))? == 1)
    }
}

impl Line for Subscribed {
    async fn hear(&mut self) -> Option<Heard> {
        let message = self.hearing.next().await?;
        self.heard_at = Instant::now();
        let message = String::from_utf8_lossy(message.get_payload_bytes());
        let mut lines = message.lines();
        Some(match lines.next() {
            Some(HERE) => Heard::Nothing,
            Some("counts") => Heard::News(News::Counts(lines.filter_map(|id| ObjectId::new(id).ok()).collect())),
            Some(word) => Heard::News(Word::read(word).map_or(News::Anything, Word::news)),
            None => Heard::News(News::Anything),
        })
    }

    /// A subscription whose other end has gone without a word is silent for ever; so a server also listens for itself.
    async fn beat(&mut self, watching: &BTreeSet<ObjectId>, leases: &[Lease]) -> Result<Beat, StoreError> {
        if self.heard_at.elapsed() > DEAF_AFTER {
            return Err(StoreError::Unavailable("nothing is heard from Redis any more".into()));
        }
        self.means.publish(HERE).await?;
        let mut held = Vec::new();
        for work in leases {
            if self.means.hold(*work, HELD_FOR_MS).await? {
                held.push(*work);
            }
        }
        // A fail-over may have lost what was watched, and nobody was told of what changed meanwhile.
        let missed = self.means.watch(watching).await? > 0;
        Ok(Beat { watched: true, missed, leases: held })
    }

    async fn watch(&mut self, _watching: &BTreeSet<ObjectId>, new: &BTreeSet<ObjectId>) -> Result<(), StoreError> {
        self.means.watch(new).await.map(drop)
    }

    async fn tell(&mut self, changed: &BTreeSet<ObjectId>, words: &BTreeSet<Word>) -> Result<(), StoreError> {
        let means = self.means.clone();
        for word in words {
            means.publish(word.text()).await?;
        }
        let changed: Vec<&ObjectId> = changed.iter().collect();
        let mut command = Cmd::new();
        command.arg("ZCARD").arg(means.watched());
        if changed.is_empty() || number(Some(means.link.send(&command).await?))? == 0 {
            return Ok(());
        }
        for objects in changed.chunks(OBJECTS_AT_ONCE) {
            let mut command = Cmd::new();
            command.arg("ZMSCORE").arg(means.watched());
            objects.iter().for_each(|object| _ = command.arg(object.as_str()));
            let watched = items(means.link.send(&command).await?)?;
            let mut message = String::from("counts");
            for (object, score) in objects.iter().zip(watched) {
                if text(score)?.is_some() {
                    message += "\n";
                    message += object.as_str();
                }
            }
            if message.len() > "counts".len() {
                means.publish(&message).await?;
            }
        }
        Ok(())
    }

    async fn lease(&mut self, work: Lease) -> Result<bool, StoreError> {
        self.means.hold(work, HELD_FOR_MS).await
    }

    async fn release(&mut self, work: Lease) -> Result<(), StoreError> {
        self.means.hold(work, "0").await.map(drop)
    }

    async fn leave(&mut self, leases: &[Lease]) -> Result<(), StoreError> {
        for work in leases {
            self.means.hold(*work, "0").await?;
        }
        Ok(())
    }
}
