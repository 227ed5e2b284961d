//! What the task and those who ask it share: what is to be said, and what was heard. Everything here is bounded by what
//! there is to know, however long nobody can be told.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tally_core::ObjectId;
use tokio::sync::{Notify, oneshot};

use super::{Heard, Word, down};
use crate::{Lease, News, StoreError};

/// Changed objects that are told one by one. Of more it is said that anything may have changed.
const CHANGED_MAX: usize = 10_000;

/// What needs an answer, or has its place in an order.
pub(super) enum Ask {
    Lease(Lease, oneshot::Sender<Result<bool, StoreError>>),
    Release(Lease),
    Leave(oneshot::Sender<()>),
}

pub(super) struct Shared {
    notes: Mutex<Notes>,
    /// There is something new to say or to answer.
    pub(super) asked: Notify,
    heard: Mutex<Unread>,
    arrived: Notify,
    /// Whether anybody may be watching anything; where it is not known, somebody may.
    watched: AtomicBool,
}

#[derive(Default)]
struct Notes {
    asks: Vec<Ask>,
    /// Objects that are watched here.
    watching: BTreeSet<ObjectId>,
    /// Those of them that others do not know of yet.
    unsaid: BTreeSet<ObjectId>,
    /// Whether what is watched has changed in any way.
    is_told_anew: bool,
    /// Objects that changed here, not yet told.
    changed: BTreeSet<ObjectId>,
    /// Other news, not yet told.
    words: BTreeSet<Word>,
    closed: bool,
}

/// What was heard and not yet taken.
#[derive(Default)]
struct Unread {
    counts: BTreeSet<ObjectId>,
    words: BTreeSet<Word>,
}

impl Default for Shared {
    fn default() -> Self {
        let (notes, asked, heard, arrived) = Default::default();
        Self { notes, asked, heard, arrived, watched: AtomicBool::new(true) }
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

    pub(super) fn watch(&self, objects: Vec<ObjectId>, watched: bool) {
        self.note(|notes| {
            notes.is_told_anew = true;
            for object in objects {
                if watched {
                    notes.unsaid.insert(object.clone());
                    notes.watching.insert(object);
                } else {
                    notes.unsaid.remove(&object);
                    notes.watching.remove(&object);
                }
            }
        });
    }

    pub(super) fn changed(&self, objects: impl IntoIterator<Item = ObjectId>) {
        self.note(|notes| notes.add_changed(objects));
    }

    pub(super) fn say(&self, word: Word) {
        self.note(|notes| _ = notes.words.insert(word));
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
            if let Some(news) = lock(&self.heard).take() {
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
        notes.is_told_anew || !notes.changed.is_empty() || !notes.words.is_empty()
    }

    pub(super) fn watching(&self) -> BTreeSet<ObjectId> {
        lock(&self.notes).watching.clone()
    }

    /// Others may have forgotten what is watched here.
    pub(super) fn forget_said(&self) {
        let mut notes = lock(&self.notes);
        notes.unsaid = notes.watching.clone();
        notes.is_told_anew = true;
    }

    /// What is watched here and which of it is new, if that has changed.
    pub(super) fn take_watching(&self) -> Option<(BTreeSet<ObjectId>, BTreeSet<ObjectId>)> {
        let mut notes = lock(&self.notes);
        let changed = std::mem::take(&mut notes.is_told_anew);
        changed.then(|| (notes.watching.clone(), std::mem::take(&mut notes.unsaid)))
    }

    pub(super) fn take_told(&self) -> (BTreeSet<ObjectId>, BTreeSet<Word>) {
        let mut notes = lock(&self.notes);
        (std::mem::take(&mut notes.changed), std::mem::take(&mut notes.words))
    }

    /// What could not be told is told later; twice does no harm.
    pub(super) fn put_back(&self, changed: BTreeSet<ObjectId>, words: BTreeSet<Word>) {
        let mut notes = lock(&self.notes);
        notes.words.extend(words);
        notes.add_changed(changed);
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
    fn add_changed(&mut self, objects: impl IntoIterator<Item = ObjectId>) {
        self.changed.extend(objects);
        if self.changed.len() > CHANGED_MAX {
            self.changed.clear();
            self.words.insert(Word::Anything);
        }
    }
}

impl Unread {
    fn add(&mut self, news: News) {
        let word = match news {
            News::Counts(objects) => return self.counts.extend(objects),
            News::Keys => Word::Keys,
            News::Jobs => Word::Jobs,
            News::Anything => Word::Anything,
        };
        self.words.insert(word);
    }

    fn take(&mut self) -> Option<News> {
        if self.words.remove(&Word::Anything) {
            *self = Self::default();
            return Some(News::Anything);
        }
        if let Some(word) = self.words.pop_first() {
            return Some(word.news());
        }
        let counts = std::mem::take(&mut self.counts);
        (!counts.is_empty()).then(|| News::Counts(counts.into_iter().collect()))
    }
}

pub(super) fn refuse(answer: oneshot::Sender<Result<bool, StoreError>>) {
    // Whoever asked may have gone.
    let _ = answer.send(Err(down()));
}
