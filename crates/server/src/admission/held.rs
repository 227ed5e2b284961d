//! Who is inside, as of a moment ago: a proxy asks for every picture of a page, and the store need not.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tally::core::Name;
use tally::core::query::HolderAnswer;

/// How long an answer is good for.
const FRESH: Duration = Duration::from_secs(1);
/// Most that are remembered. With more all are asked for again.
const HOLDERS_MAX: usize = 100_000;

/// Who is inside.
#[derive(Default)]
pub struct Held {
    // A std lock: held for a look, never across an await.
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    answers: HashMap<(Name, u64), (Instant, HolderAnswer)>,
    /// How often something was forgotten.
    forgotten: u64,
}

impl Held {
    /// What was answered a moment ago; else what [`Held::note`] has to be told.
    pub fn look(&self, room: &Name, seq: u64) -> Result<HolderAnswer, u64> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let found = inner.answers.get(&(room.clone(), seq)).filter(|(at, _)| at.elapsed() < FRESH);
        found.map(|(_, answer)| answer.clone()).ok_or(inner.forgotten)
    }

    /// Remembers an answer that was asked for at this time, unless anything was forgotten since: then it may be older than that.
    pub fn note(&self, room: &Name, seq: u64, asked_at: Instant, answer: &HolderAnswer, forgotten: u64) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.forgotten != forgotten {
            return;
        }
        if inner.answers.len() >= HOLDERS_MAX {
            inner.answers.clear();
        }
        inner.answers.insert((room.clone(), seq), (asked_at, answer.clone()));
    }

    /// Asks anew from now on.
    pub fn forget(&self, room: &Name, seq: u64) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.forgotten += 1;
        inner.answers.remove(&(room.clone(), seq));
    }

    /// The same of a whole room.
    pub fn forget_room(&self, room: &Name) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.forgotten += 1;
        inner.answers.retain(|(of, _), _| of != room);
    }
}
