//! What the task and those who ask it share: what is to be said, and what was heard. Everything here is bounded by what
//! there is to know, however long nobody can be told.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tally_core::rows::Partitions;
use tokio::sync::{Notify, oneshot, watch};

use super::{Heard, down};
use crate::{Lease, News, StoreError, Topic};

/// Topics that are told one by one. Of more it is said that anything may have changed.
const TOPICS_MAX: usize = 10_000;

/// What needs an answer, or has its place in an order.
pub(super) enum Ask {
    Lease(Lease, oneshot::Sender<Result<bool, StoreError>>),
    Release(Lease),
    Share,
    Leave(oneshot::Sender<()>),
}

pub(super) struct Shared {
    notes: Mutex<Notes>,
    /// There is something new to say or to answer.
    pub(super) asked: Notify,
    /// What was heard and not yet taken.
    heard: Mutex<News>,
    arrived: Notify,
    /// Whether anybody may be watching anything; where it is not known, somebody may.
    watched: AtomicBool,
    /// The partitions that this server has.
    pub(super) partitions: watch::Sender<Partitions>,
}

#[derive(Default)]
struct Notes {
    asks: Vec<Ask>,
    /// Topics that are watched here.
    watching: BTreeSet<Topic>,
    /// Those of them that others do not know of yet.
    unsaid: BTreeSet<Topic>,
    /// Whether what is watched has changed in any way.
    is_told_anew: bool,
    /// What changed here, not yet told.
    news: News,
    closed: bool,
}

impl Default for Shared {
    fn default() -> Self {
        let (notes, asked, heard, arrived) = Default::default();
        let partitions = watch::Sender::new(Partitions::NONE);
        Self { notes, asked, heard, arrived, watched: AtomicBool::new(true), partitions }
    }
}

/// The sets stay whole whatever panics around them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// For those who ask.
impl Shared {
    fn note(&self, note: impl FnOnce(&mut Notes)) {
        note(&mut lock(&self.notes));
        self.asked.notify_one();
    }

    pub(super) fn ask(&self, ask: Ask) {
        self.note(|notes| {
            if !notes.closed {
                notes.asks.push(ask);
            }
        });
    }

    pub(super) fn watch(&self, topics: Vec<Topic>, watched: bool) {
        self.note(|notes| {
            notes.is_told_anew = true;
            for topic in topics {
                if watched {
                    notes.unsaid.insert(topic.clone());
                    notes.watching.insert(topic);
                } else {
                    notes.unsaid.remove(&topic);
                    notes.watching.remove(&topic);
                }
            }
        });
    }

    pub(super) fn tell(&self, news: News) {
        self.note(|notes| notes.add(news));
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Nobody is left to ask or to be told.
    pub(super) fn close(&self) {
        self.note(|notes| {
            notes.closed = true;
            notes.asks.clear();
        });
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.notes).closed
    }

    pub(super) async fn news(&self) -> News {
        loop {
            let news = std::mem::take(&mut *lock(&self.heard));
            if !news.is_empty() {
                return news;
            }
            self.arrived.notified().await;
        }
    }
}

/// For the task.
impl Shared {
    /// What is to be answered, in order; none when nobody is left.
    pub(super) fn asks(&self) -> Option<Vec<Ask>> {
        let mut notes = lock(&self.notes);
        (!notes.closed).then(|| std::mem::take(&mut notes.asks))
    }

    pub(super) fn is_due(&self) -> bool {
        let notes = lock(&self.notes);
        notes.is_told_anew || !notes.news.is_empty()
    }

    pub(super) fn watching(&self) -> BTreeSet<Topic> {
        lock(&self.notes).watching.clone()
    }

    /// Others may have forgotten what is watched here.
    pub(super) fn forget_said(&self) {
        let mut notes = lock(&self.notes);
        notes.unsaid = notes.watching.clone();
        notes.is_told_anew = true;
    }

    /// What is watched here and which of it is new, if that has changed.
    pub(super) fn take_watching(&self) -> Option<(BTreeSet<Topic>, BTreeSet<Topic>)> {
        let mut notes = lock(&self.notes);
        let changed = std::mem::take(&mut notes.is_told_anew);
        changed.then(|| (notes.watching.clone(), std::mem::take(&mut notes.unsaid)))
    }

    pub(super) fn take_told(&self) -> News {
        std::mem::take(&mut lock(&self.notes).news)
    }

    /// What could not be told is told later; twice does no harm.
    pub(super) fn put_back(&self, news: News) {
        lock(&self.notes).add(news);
    }

    /// What this server has now.
    pub(super) fn hold(&self, partitions: Partitions) {
        self.partitions.send_if_modified(|held| std::mem::replace(held, partitions) != partitions);
    }

    pub(super) fn set_watched(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
    }

    pub(super) fn hear(&self, heard: Heard) {
        match heard {
            Heard::News(news) => {
                lock(&self.heard).add(news);
                self.arrived.notify_one();
            }
            Heard::Watched => self.set_watched(true),
            Heard::Nothing => {}
        }
    }
}

impl Notes {
    fn add(&mut self, news: News) {
        self.news.add(news);
        self.news.bound(TOPICS_MAX);
    }
}

pub(super) fn refuse(answer: oneshot::Sender<Result<bool, StoreError>>) {
    // Whoever asked may have gone.
    let _ = answer.send(Err(down()));
}
