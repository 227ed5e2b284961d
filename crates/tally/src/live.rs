//! Live counts: who watches what, and the newest value of each that they have not seen.
//!
//! A slow watcher costs one value per count that it watches, never a queue: it gets the full count
//! after the last change, not every step on the way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tally_core::rows::TotalKey;
use tally_core::{Name, ObjectId};
use tokio::sync::Notify;

use crate::Error;

/// Subscriptions at once, unless set otherwise.
const SUBSCRIPTIONS_MAX: usize = 10_000;

type Watched = (ObjectId, Name);

/// What one batch has to say to one watcher.
type Letter = Vec<(TotalKey, i64)>;

/// Everyone who watches.
pub struct Hub {
    watchers: Mutex<HashMap<Watched, Vec<Arc<Mailbox>>>>,
    subscriptions: AtomicUsize,
    subscriptions_max: usize,
    /// Told what is watched here, so that other servers tell of it; nobody where there are no others.
    watch: Option<Watch>,
}

/// Says of some objects that they are watched, or are no more.
pub(crate) type Watch = Box<dyn Fn(Vec<ObjectId>, bool) + Send + Sync>;

#[derive(Default)]
struct Mailbox {
    letters: Mutex<Letters>,
    arrived: Notify,
}

#[derive(Default)]
struct Letters {
    unseen: BTreeMap<TotalKey, i64>,
    /// The last value of each: counts are read again now and then, and most have not changed.
    last: HashMap<TotalKey, i64>,
}

impl Mailbox {
    fn put(&self, letter: Letter) {
        let mut letters = lock(&self.letters);
        for (key, value) in letter {
            if letters.last.insert(key.clone(), value) != Some(value) {
                letters.unseen.insert(key, value);
            }
        }
        if !letters.unseen.is_empty() {
            self.arrived.notify_one();
        }
    }

    fn take(&self) -> BTreeMap<TotalKey, i64> {
        std::mem::take(&mut lock(&self.letters).unseen)
    }
}

/// A subscription; it ends when dropped.
pub struct Subscription {
    hub: Arc<Hub>,
    watched: Vec<Watched>,
    mailbox: Arc<Mailbox>,
    _seat: Seat,
}

/// One of the subscriptions that there may be at once, whatever it is to; free again when dropped.
pub(crate) struct Seat(Arc<Hub>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.subscriptions.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The maps stay whole whatever panics around them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(crate) fn new(subscriptions_max: usize, watch: Option<Watch>) -> Self {
        let subscriptions_max = if subscriptions_max == 0 { SUBSCRIPTIONS_MAX } else { subscriptions_max };
        Self { watchers: Mutex::default(), subscriptions: AtomicUsize::new(0), subscriptions_max, watch }
    }

    pub(crate) fn take_seat(self: &Arc<Self>) -> Result<Seat, Error> {
        let seat = Seat(self.clone());
        if self.subscriptions.fetch_add(1, Ordering::SeqCst) >= self.subscriptions_max {
            return Err(Error::Overloaded);
        }
        Ok(seat)
    }

    pub(crate) fn subscribe(self: &Arc<Self>, objects: &[ObjectId], relations: &[Name]) -> Result<Subscription, Error> {
        let seat = self.take_seat()?;
        let mailbox = Arc::new(Mailbox::default());
        let pairs = objects.iter().flat_map(|object| relations.iter().map(|name| (object.clone(), name.clone())));
        let watched: Vec<Watched> = pairs.collect();
        let mut watchers = lock(&self.watchers);
        for pair in &watched {
            watchers.entry(pair.clone()).or_default().push(mailbox.clone());
        }
        // With the lock held, so that what is said last of an object is true.
        if let Some(watch) = &self.watch {
            watch(objects.to_vec(), true);
        }
        drop(watchers);
        Ok(Subscription { hub: self.clone(), watched, mailbox, _seat: seat })
    }

    /// Tells the new totals of one batch to those who watch them, to each all at once: nobody sees
    /// a count moved and its kinds not.
    pub(crate) fn publish(&self, totals: &[(TotalKey, i64)]) {
        if self.subscriptions() == 0 {
            return;
        }
        let watchers = lock(&self.watchers);
        let mut letters: HashMap<*const Mailbox, (&Mailbox, Letter)> = HashMap::new();
        for (key, value) in totals {
            let pair = match key {
                TotalKey::Object { object, relation } | TotalKey::Kind { object, relation, .. } => {
                    (object.clone(), relation.clone())
                }
                _ => continue,
            };
            for mailbox in watchers.get(&pair).into_iter().flatten() {
                let (_, letter) = letters.entry(Arc::as_ptr(mailbox)).or_insert_with(|| (mailbox, Vec::new()));
                letter.push((key.clone(), *value));
            }
        }
        for (mailbox, letter) in letters.into_values() {
            mailbox.put(letter);
        }
    }

    /// The objects that are watched.
    pub(crate) fn objects(&self) -> Vec<ObjectId> {
        lock(&self.watchers).keys().map(|(object, _)| object.clone()).collect()
    }

    /// What is watched of these objects.
    pub(crate) fn watched(&self, objects: &BTreeSet<ObjectId>) -> Vec<(ObjectId, Name)> {
        lock(&self.watchers).keys().filter(|(object, _)| objects.contains(object)).cloned().collect()
    }

    /// How many subscriptions there are.
    pub fn subscriptions(&self) -> usize {
        self.subscriptions.load(Ordering::SeqCst)
    }
}

impl Subscription {
    /// Waits for changes, and gives the newest value of each total that changed.
    pub async fn next(&mut self) -> BTreeMap<TotalKey, i64> {
        loop {
            let unseen = self.mailbox.take();
            if !unseen.is_empty() {
                return unseen;
            }
            self.mailbox.arrived.notified().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut watchers = lock(&self.hub.watchers);
        for pair in &self.watched {
            if let Some(mailboxes) = watchers.get_mut(pair) {
                mailboxes.retain(|mailbox| !Arc::ptr_eq(mailbox, &self.mailbox));
                if mailboxes.is_empty() {
                    watchers.remove(pair);
                }
            }
        }
        if let Some(watch) = &self.hub.watch {
            let mut left: BTreeSet<ObjectId> = self.watched.iter().map(|(object, _)| object.clone()).collect();
            for (object, _) in watchers.keys() {
                left.remove(object);
            }
            watch(left.into_iter().collect(), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_reaches_a_watcher_all_at_once() {
        let hub = Arc::new(Hub::new(0, None));
        let (object, relation) = (ObjectId::new("post:1").unwrap(), Name::new("reaction").unwrap());
        let subscription = hub.subscribe(std::slice::from_ref(&object), std::slice::from_ref(&relation)).unwrap();
        let kind = |kind: &str| TotalKey::Kind {
            object: object.clone(),
            relation: relation.clone(),
            kind: Name::new(kind).unwrap(),
        };
        let mailbox = subscription.mailbox.clone();
        let publishing = std::thread::spawn({
            let (hub, love, wow) = (hub.clone(), kind("love"), kind("wow"));
            move || (0..10_000).for_each(|n| hub.publish(&[(love.clone(), n), (wow.clone(), n + 1)]))
        });
        while !publishing.is_finished() {
            let seen = mailbox.take();
            assert!(seen.is_empty() || seen.len() == 2, "half a batch: {seen:?}");
        }
        publishing.join().unwrap();
    }
}
