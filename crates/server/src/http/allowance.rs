//! How much is remembered for one caller: answers to idempotency keys are kept for a day, so whoever asks for too many of
//! them in an hour is told to come back later.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tally::core::Refusal;
use tally::core::error::Exhausted;
use tally::core::hash::digest;

use super::problem::Problem;

const HOUR: Duration = Duration::from_secs(3_600);
/// Callers that are kept count of. With more the count begins anew for all.
const CALLERS_MAX: usize = 100_000;
/// Keys of one caller that are known to be paid for: at least so many of the newest.
const KEYS_MAX: usize = 4_096;

/// A key: a digest, as nobody finds two that share one.
type KeyDigest = [u64; 2];

/// What each caller has used in its hour.
#[derive(Default)]
pub struct Allowance {
    // A std lock: held for a look, never across an await.
    callers: Mutex<HashMap<String, Used>>,
}

struct Used {
    since: Instant,
    bytes: u64,
    /// What was paid for the newest keys, and for those before them: sending the same again is free.
    keys: [HashMap<KeyDigest, u64>; 2],
}

impl Used {
    fn new(since: Instant) -> Self {
        Self { since, bytes: 0, keys: Default::default() }
    }

    fn paid(&self, key: KeyDigest) -> u64 {
        self.keys.iter().find_map(|keys| keys.get(&key)).copied().unwrap_or(0)
    }

    fn note(&mut self, key: KeyDigest, paid: u64) {
        if self.keys[0].len() >= KEYS_MAX && !self.keys[0].contains_key(&key) {
            self.keys = [HashMap::new(), std::mem::take(&mut self.keys[0])];
        }
        self.keys[0].insert(key, paid);
    }
}

impl Allowance {
    /// Takes so many bytes for what will be remembered, or refuses if all was used up before. Of a key that was sent
    /// before only what is more than then: whoever lost an answer must be able to ask for it again.
    pub fn take(&self, caller: &str, key: &str, bytes: u64, bytes_max: u64) -> Result<(), Problem> {
        self.take_at(caller, digest(&[key]), bytes, bytes_max, Instant::now())
    }

    fn take_at(&self, caller: &str, key: KeyDigest, bytes: u64, bytes_max: u64, now: Instant) -> Result<(), Problem> {
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
        let due = bytes.saturating_sub(used.paid(key));
        if due == 0 {
            return Ok(());
        }
        // The last one may be larger than what is left, so that none is too large for ever.
        if used.bytes < bytes_max {
            used.bytes = used.bytes.saturating_add(due);
            used.note(key, bytes);
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
        let take = |caller: &str, key, bytes, at| allowance.take_at(caller, [key, 0], bytes, 400, start + at).is_ok();
        assert!(take("alice", 1, 200, Duration::ZERO) && take("alice", 2, 200, HOUR / 2));
        assert!(!take("alice", 3, 200, HOUR / 2) && take("bob", 1, 400, HOUR / 2));
        assert!(take("alice", 1, 200, HOUR / 2), "what was paid for may be asked for again");
        assert!(take("alice", 3, 400, HOUR));
        assert!(take("carol", 1, 10_000, HOUR) && !take("carol", 2, 200, HOUR), "the last one may be large");
    }

    #[test]
    fn a_key_pays_for_what_it_carries_later() {
        let (allowance, start) = (Allowance::default(), Instant::now());
        let take = |key: u64, bytes| allowance.take_at("alice", [key, 0], bytes, 400, start).is_ok();
        assert!(take(1, 10) && take(2, 10));
        assert!(take(1, 5_000), "the last one may be large");
        assert!(take(1, 5_000) && take(1, 10) && take(2, 10), "all of that is paid for");
        assert!(!take(2, 5_000) && !take(2, 11) && !take(1, 5_001));
    }

    #[test]
    fn the_newest_keys_are_known() {
        let (allowance, start) = (Allowance::default(), Instant::now());
        let keys = 3 * KEYS_MAX as u64;
        let take = |key: u64| allowance.take_at("alice", [key, 0], 1, keys, start).is_ok();
        assert!((0..keys).all(take));
        assert!((keys - KEYS_MAX as u64..keys).all(take), "paid for");
        assert!(!take(0), "so long ago that it is to be paid for anew");
    }
}
