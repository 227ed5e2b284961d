//! What other servers on the same store tell, and what is done about it here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tally_core::rows::TotalKey;
use tally_core::view::Wants;
use tally_core::{Catalog, ObjectId};
use tally_engine::due::Bell;
use tally_engine::{Engine, News, StoreError, Together, Topic};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::Hub;
use crate::rooms::Rooms;

/// How soon counts that could not be read are read again.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// How often everything that is watched is read again: news may be lost, and is known within a minute all the same.
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// News taken together.
const NEWS_AT_ONCE: usize = 1_000;
/// Totals in one load.
const TOTALS_AT_ONCE: usize = 1_000;

/// Listens to other servers.
pub(crate) struct Follower<E> {
    pub(crate) engine: Arc<E>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) rooms: Arc<Rooms<E>>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) new_job: Arc<Notify>,
    pub(crate) new_keys: Arc<Notify>,
    pub(crate) look_every: Option<Duration>,
}

impl<E: Engine> Follower<E> {
    /// Listens until it is stopped.
    pub(crate) async fn run(self, mut stopped: watch::Receiver<bool>) {
        // What changed elsewhere and could not be read yet.
        let mut unread = BTreeSet::new();
        let every = self.look_every.unwrap_or(LOOK_EVERY);
        let mut look_at = Instant::now() + every;
        loop {
            // What is due by the time comes first, so that no stream of news keeps it waiting.
            let news = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = sleep_until(look_at) => {
                    look_at = Instant::now() + every;
                    unread.extend(self.hub.objects());
                    None
                }
                news = self.engine.news() => Some(news),
                () = sleep(READ_AGAIN_AFTER), if !unread.is_empty() => None,
            };
            self.hear(news, &mut unread).await;
        }
    }

    /// Takes what has arrived, so that a count which changed ten times is read once.
    async fn hear(&self, first: Option<News>, unread: &mut BTreeSet<ObjectId>) {
        let mut objects = std::mem::take(unread);
        let mut next = first;
        let mut taken = 0;
        while let Some(news) = next.take() {
            match news {
                News::Of(topics) => objects.extend(topics.into_iter().filter_map(|topic| self.act_on(topic))),
                News::Anything => {
                    self.new_keys.notify_one();
                    self.new_job.notify_one();
                    self.bell.ring();
                    self.rooms.all_changed();
                    objects.extend(self.hub.objects());
                }
            }
            taken += 1;
            // Where news come faster than they are taken, those that are there are acted on first.
            if taken < NEWS_AT_ONCE {
                next = self.engine.news().now_or_never();
            }
        }
        if let Err(error) = self.refresh(&objects).await {
            tracing::warn!(%error, "live counts could not be read; they are read again");
            *unread = objects;
        }
    }

    /// Has whoever minds a topic look at it. Gives the object whose counts are to be read.
    fn act_on(&self, topic: Topic) -> Option<ObjectId> {
        match topic {
            Topic::Counts(object) => return Some(object),
            Topic::Room(room) => self.rooms.changed(&room),
            Topic::Due => self.bell.ring(),
            Topic::Keys => self.new_keys.notify_one(),
            Topic::Jobs => self.new_job.notify_one(),
        }
        None
    }

    async fn refresh(&self, objects: &BTreeSet<ObjectId>) -> Result<(), StoreError> {
        let (mut wanted, mut read) = (Vec::new(), Vec::new());
        for (object, relation) in self.hub.watched(objects) {
            let kinds = self.catalog.relation(&relation).map(|found| found.one_of.clone()).unwrap_or_default();
            let kinds = kinds.into_iter().map(|kind| {
                let (object, relation) = (object.clone(), relation.clone());
                TotalKey::Kind { object, relation, kind }
            });
            wanted.extend(kinds);
            // A count and its kinds are read as of one moment.
            wanted.push(TotalKey::Object { object, relation });
            if wanted.len() >= TOTALS_AT_ONCE {
                self.read(std::mem::take(&mut wanted), &mut read).await?;
            }
        }
        self.read(wanted, &mut read).await?;
        self.hub.publish(&read);
        Ok(())
    }

    async fn read(&self, totals: Vec<TotalKey>, read: &mut Vec<(TotalKey, i64)>) -> Result<(), StoreError> {
        if !totals.is_empty() {
            let wants = Wants::totals(totals);
            let loaded = self.engine.load(&wants).await?;
            read.extend(wants.totals.into_iter().zip(loaded.totals));
        }
        Ok(())
    }
}
