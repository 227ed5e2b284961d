//! How much is remembered for one caller: answers to idempotency keys are kept for a day, so whoever asks for too many of
//! them in an hour is told to come back later.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tally::core::Refusal;
use tally::core::error::Exhausted;
use tally::core::hash::fingerprint;

use super::problem::Problem;

const HOUR: Duration = Duration::from_secs(3_600);
/// Callers that are kept count of. With more the count begins anew for all.
const CALLERS_MAX: usize = 100_000;
/// Keys of one caller that are known to be paid for: at least so many of the newest.
const KEYS_MAX: usize = 4_096;
/// About as many bytes as one remembered answer takes, and one command in it.
const ANSWER_BYTES: u64 = 512;

/// What each caller has used in its hour.
#[derive(Default)]
pub struct Allowance {
    // A std lock: held for a look, never across an await.
    callers: Mutex<HashMap<String, Used>>,
}

struct Used {
    since: Instant,
    bytes: u64,
    /// Fingerprints of the newest keys that were paid for, and of those before them: sending one again is free.
    keys: [HashSet<u64>; 2],
}

impl Used {
    fn new(since: Instant) -> Self {
        Self { since, bytes: 0, keys: Default::default() }
    }

    fn note(&mut self, key: u64) {
        if self.keys[0].len() >= KEYS_MAX {
            self.keys = [HashSet::new(), std::mem::take(&mut self.keys[0])];
        }
        self.keys[0].insert(key);
    }
}

impl Allowance {
    /// Takes what the answer to so many commands is worth, or refuses if all was used up before. A key that was sent
    /// before is let through: whoever lost an answer must be able to ask for it again.
    pub fn take(&self, caller: &str, key: &str, commands: usize, bytes_max: u64) -> Result<(), Problem> {
        self.take_at(caller, fingerprint(&[key.as_bytes()]), commands, bytes_max, Instant::now())
    }

    fn take_at(&self, caller: &str, key: u64, commands: usize, bytes_max: u64, now: Instant) -> Result<(), Problem> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= CALLERS_MAX && !callers.contains_key(caller) {
            callers.retain(|_, used| now.duration_since(used.since) < HOUR);
            if callers.len() >= CALLERS_MAX {
                callers.clear();
            }
        }
        if !callers.contains_key(caller) {
            callers.insert(caller.to_owned(), Used::new(now));
        }
        let Some(used) = callers.get_mut(caller) else { return Ok(()) };
        if now.duration_since(used.since) >= HOUR {
            *used = Used::new(now);
        }
        if used.keys.iter().any(|keys| keys.contains(&key)) {
            return Ok(());
        }
        // The last one may be larger than what is left, so that none is too large for ever.
        if used.bytes < bytes_max {
            used.bytes = used.bytes.saturating_add(ANSWER_BYTES.saturating_mul(1 + commands as u64));
            used.note(key);
            return Ok(());
        }
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let left_ms = millis(HOUR.saturating_sub(now.duration_since(used.since)));
        Err(Problem::from(Refusal::RateLimited(Box::new(Exhausted {
            limit: "idempotency".into(),
            amount: bytes_max,
            window_ms: millis(HOUR),
            remaining: bytes_max.saturating_sub(used.bytes),
            reset_ms: left_ms,
            retry_after_ms: left_ms,
        }))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_its_own_and_gets_it_anew() {
        let (allowance, start) = (Allowance::default(), Instant::now());
        let take = |caller: &str, key, commands, at| {
            allowance.take_at(caller, key, commands, 4 * ANSWER_BYTES, start + at).is_ok()
        };
        assert!(take("alice", 1, 1, Duration::ZERO) && take("alice", 2, 1, HOUR / 2));
        assert!(!take("alice", 3, 1, HOUR / 2) && take("bob", 1, 3, HOUR / 2));
        assert!(take("alice", 1, 1, HOUR / 2), "what was paid for may be asked for again");
        assert!(take("alice", 3, 3, HOUR));
        assert!(take("carol", 1, 100, HOUR) && !take("carol", 2, 1, HOUR), "the last one may be large");
    }
}
