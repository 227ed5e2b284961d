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
use tally_engine::follow::{Beat, Heard, Here, Line, Share, Wire};
use tally_engine::{Lease, News, StoreError, Topic};
use tokio::time::Instant;

use crate::answer::{items, number, text};
use crate::connection::{Link, Script};
use crate::keys::Keys;
use crate::words::Ask;

/// How long work is held, topics count as watched, and a server as there, without another word.
const HELD_FOR_MS: &str = "10000";
/// After how long without even its own words a subscription counts as dead.
const DEAF_AFTER: Duration = Duration::from_secs(10);
/// Topics in one message.
const TOPICS_AT_ONCE: usize = 500;
/// What a server says to itself, to know that it hears.
const HERE: &str = "here";

/// What the task works with.
pub(crate) struct Means {
    pub(crate) server: String,
    pub(crate) keys: Keys,
    pub(crate) link: Arc<Link>,
    pub(crate) here: Script,
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

    fn servers(&self) -> String {
        self.keys.system("servers")
    }

    /// Says that these are watched. Gives how many of them nobody knew to be.
    async fn watch(&self, topics: &BTreeSet<Topic>) -> Result<i64, StoreError> {
        let mut new = 0;
        let topics: Vec<&Topic> = topics.iter().collect();
        for topics in topics.chunks(TOPICS_AT_ONCE) {
            let mut ask = Ask::new([self.watched()], &[HELD_FOR_MS]);
            topics.iter().for_each(|topic| ask.words.push(topic.to_string()));
            new += number(Some(self.link.run(&self.watch, &ask).await?))?;
        }
        Ok(new)
    }

    /// Takes work, goes on holding it, or gives it back. Gives what is held then.
    async fn hold(&self, work: &[Lease], at_most: usize, for_ms: &str) -> Result<Vec<Lease>, StoreError> {
        if work.is_empty() {
            return Ok(Vec::new());
        }
        let leases: Vec<String> = work.iter().map(|work| self.keys.system(&format!("lease:{work}"))).collect();
        let ask = Ask::new(leases, &[&self.server, for_ms, &at_most.to_string()]);
        let mut held = Vec::new();
        for (work, has) in work.iter().zip(items(self.link.run(&self.lease, &ask).await?)?) {
            if number(Some(has))? == 1 {
                held.push(*work);
            }
        }
        Ok(held)
    }

    async fn share(&self) -> Result<Share, StoreError> {
        let ask = Ask::new([self.servers()], &[&self.server, HELD_FOR_MS]);
        let mut answer = items(self.link.run(&self.here, &ask).await?)?.into_iter();
        let mut count = || Ok::<_, StoreError>(usize::try_from(number(answer.next())?).unwrap_or_default());
        Ok(Share { rank: count()?, servers: count()? })
    }

    /// Of some topics those that somebody watches, as one message.
    async fn watched_of(&self, topics: &[&Topic]) -> Result<Vec<String>, StoreError> {
        let mut command = Cmd::new();
        command.arg("ZMSCORE").arg(self.watched());
        let topics: Vec<String> = topics.iter().map(|topic| topic.to_string()).collect();
        topics.iter().for_each(|topic| _ = command.arg(topic));
        let scores = items(self.link.send(&command).await?)?;
        let mut watched = Vec::new();
        for (topic, score) in topics.into_iter().zip(scores) {
            if text(score)?.is_some() {
                watched.push(topic);
            }
        }
        Ok(watched)
    }
}

impl Line for Subscribed {
    async fn hear(&mut self) -> Option<Heard> {
        let message = self.hearing.next().await?;
        self.heard_at = Instant::now();
        let message = String::from_utf8_lossy(message.get_payload_bytes());
        if message == HERE {
            return Some(Heard::Nothing);
        }
        let mut news = News::default();
        message.lines().for_each(|topic| news.add(News::read(topic)));
        Some(Heard::News(news))
    }

    /// A subscription whose other end has gone without a word is silent for ever; so a server also listens for itself.
    async fn beat(&mut self, here: &Here<'_>) -> Result<Beat, StoreError> {
        if self.heard_at.elapsed() > DEAF_AFTER {
            return Err(StoreError::Unavailable("nothing is heard from Redis any more".into()));
        }
        self.means.publish(HERE).await?;
        let leases = self.means.hold(here.leases, here.leases.len(), HELD_FOR_MS).await?;
        let share = if here.shares { self.means.share().await? } else { Share::default() };
        // A fail-over may have lost what was watched, and nobody was told of what changed meanwhile.
        let missed = self.means.watch(here.watching).await? > 0;
        Ok(Beat { watched: true, missed, leases, share })
    }

    async fn watch(&mut self, _watching: &BTreeSet<Topic>, new: &BTreeSet<Topic>) -> Result<(), StoreError> {
        self.means.watch(new).await.map(drop)
    }

    async fn tell(&mut self, news: &News) -> Result<(), StoreError> {
        let means = self.means.clone();
        let topics = match news {
            News::Of(topics) => topics,
            News::Anything => return means.publish(News::ANYTHING).await,
        };
        let (for_all, others): (Vec<&Topic>, Vec<&Topic>) = topics.iter().partition(|topic| topic.is_for_all());
        for topic in for_all {
            means.publish(&topic.to_string()).await?;
        }
        let mut command = Cmd::new();
        command.arg("ZCARD").arg(means.watched());
        if others.is_empty() || number(Some(means.link.send(&command).await?))? == 0 {
            return Ok(());
        }
        for topics in others.chunks(TOPICS_AT_ONCE) {
            let watched = means.watched_of(topics).await?;
            if !watched.is_empty() {
                means.publish(&watched.join("\n")).await?;
            }
        }
        Ok(())
    }

    async fn lease(&mut self, work: &[Lease], at_most: usize) -> Result<Vec<Lease>, StoreError> {
        self.means.hold(work, at_most, HELD_FOR_MS).await
    }

    async fn release(&mut self, work: &[Lease]) -> Result<(), StoreError> {
        self.means.hold(work, 0, "0").await.map(drop)
    }

    async fn leave(&mut self, leases: &[Lease]) -> Result<(), StoreError> {
        self.means.hold(leases, 0, "0").await?;
        let mut command = Cmd::new();
        command.arg("ZREM").arg(self.means.servers()).arg(&self.means.server);
        self.means.link.send(&command).await?;
        Ok(())
    }
}
