//! The places for connections: as many as the limit says. Who does nothing with one gives way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::activity::Activity;
use super::memory::Memory;

/// A connection that did something a moment ago keeps its place, however many wait.
const GRACE: Duration = Duration::from_secs(1);
/// How often somebody is looked for who could give way.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// All places.
pub struct Places {
    places_max: usize,
    memory: Arc<Memory>,
    // A std lock: held for a look, never across an await.
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    next: u64,
    by: BTreeMap<u64, Arc<Activity>>,
}

/// A place that is taken until this is dropped.
pub struct Place {
    places: Arc<Places>,
    number: u64,
    /// What is done with it.
    pub activity: Arc<Activity>,
}

impl Places {
    /// All of them free.
    pub fn new(places_max: usize, memory: Arc<Memory>) -> Arc<Self> {
        Arc::new(Self { places_max, memory, taken: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a place. With all of them taken, a connection that has not asked for anything, or is idle, is
    /// ended for it; with all of them at work, it waits.
    pub async fn take(self: &Arc<Self>) -> Place {
        loop {
            if let Some(place) = self.try_take() {
                return place;
            }
            self.make_room();
            // One that was freed meanwhile has left its word.
            let _ = tokio::time::timeout(LOOK_AGAIN, self.freed.notified()).await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Place> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.by.len() >= self.places_max {
            return None;
        }
        let (number, activity) = (taken.next, Activity::new(self.memory.clone()));
        taken.next += 1;
        taken.by.insert(number, activity.clone());
        Some(Place { places: self.clone(), number, activity })
    }

    fn make_room(&self) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = taken.by.values().filter_map(|activity| Some((activity.dispensable(GRACE)?, activity)));
        if let Some((_, activity)) = free.min_by_key(|(rank, _)| *rank) {
            activity.ask_to_leave();
        }
    }

    /// Waits until every place is free.
    pub async fn all_free(&self) {
        while !self.taken.lock().unwrap_or_else(PoisonError::into_inner).by.is_empty() {
            self.freed.notified().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.lock().unwrap_or_else(PoisonError::into_inner).by.remove(&self.number);
        self.places.freed.notify_one();
    }
}
