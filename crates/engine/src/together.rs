//! What servers on one store do together. On a store that one server has to itself, it has all of it.

use std::future::Future;

use tally_core::rows::{Partitions, TotalKey};
use tokio::sync::watch;

use crate::{Engine, Lease, News, StoreError, Topic};

/// Calls that go to the store's [`follower`](Engine::follower), if it has one. Every engine has them.
pub trait Together: Engine {
    /// Whether other servers may be on the same store.
    fn is_shared(&self) -> bool {
        self.nature().is_shared
    }

    /// Takes a piece of work for this server, or goes on holding it; false if another server has it.
    /// It lapses when the server dies.
    fn lease(&self, work: Lease) -> impl Future<Output = Result<bool, StoreError>> + Send {
        async move {
            match self.follower() {
                Some(follower) => follower.lease(work).await,
                None => Ok(true),
            }
        }
    }

    /// Gives it back.
    fn release(&self, work: Lease) {
        if let Some(follower) = self.follower() {
            follower.release(work);
        }
    }

    /// Takes part in what is due, from now on: this server has its share of the partitions, or all where it is alone.
    fn share(&self) {
        if let Some(follower) = self.follower() {
            follower.share();
        }
    }

    /// The partitions in which this server does what is due, as they are from time to time.
    fn partitions(&self) -> watch::Receiver<Partitions> {
        match self.follower() {
            Some(follower) => follower.partitions(),
            None => watch::channel(Partitions::ALL).1,
        }
    }

    /// Says that these topics are watched here, or are no more, so that other servers tell of them.
    fn watch(&self, topics: Vec<Topic>, watched: bool) {
        if let Some(follower) = self.follower() {
            follower.watch(topics, watched);
        }
    }

    /// Tells every server that watches one of them that these totals have changed.
    fn tell_changed(&self, totals: &[(TotalKey, i64)]) {
        if let Some(follower) = self.follower() {
            follower.tell_changed(totals);
        }
    }

    /// Tells every server that watches it, this one too, that something has changed about a topic; soon and without waiting.
    fn tell(&self, topic: Topic) {
        if let Some(follower) = self.follower() {
            follower.tell(topic);
        }
    }

    /// Waits for news. For one listener.
    fn news(&self) -> impl Future<Output = News> + Send {
        async move {
            match self.follower() {
                Some(follower) => follower.news().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Whether the part that listens, tells and leases has ended by a panic: then this server is to be restarted.
    fn has_ended_partly(&self) -> bool {
        self.follower().is_some_and(|follower| follower.has_ended())
    }
}

impl<E: Engine> Together for E {}
