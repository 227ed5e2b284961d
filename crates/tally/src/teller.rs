//! Telling other servers of what happens here, no more often than it helps them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tally_engine::{Engine, Together, Topic};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

/// How often others are told of the same room at most: positions are shown once a second.
pub(crate) const ROOMS_EVERY: Duration = Duration::from_millis(100);
/// How often they are told at most that there is something for them to do.
pub(crate) const DUE_EVERY: Duration = Duration::from_millis(200);

/// What is to be told: the first at once, and what comes right after it together.
#[derive(Default)]
pub(crate) struct Teller {
    topics: Mutex<BTreeSet<Topic>>,
    added: Notify,
}

impl Teller {
    pub(crate) fn add(&self, topic: Topic) {
        if self.topics.lock().unwrap_or_else(PoisonError::into_inner).insert(topic) {
            self.added.notify_one();
        }
    }

    /// Tells each topic at most once in so long, until it is stopped.
    pub(crate) async fn run<E: Engine>(
        self: Arc<Self>,
        engine: Arc<E>,
        every: Duration,
        mut stopped: watch::Receiver<bool>,
    ) {
        let telling = async {
            loop {
                self.added.notified().await;
                let topics = std::mem::take(&mut *self.topics.lock().unwrap_or_else(PoisonError::into_inner));
                topics.into_iter().for_each(|topic| engine.tell(topic));
                sleep(every).await;
            }
        };
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => {}
            () = telling => {}
        }
    }
}
