//! How much is remembered for one caller: answers to idempotency keys are kept for a day, so whoever asks for too many of
//! them in an hour is told to come back later.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tally::core::Refusal;
use tally::core::error::Exhausted;

use super::problem::Problem;

const HOUR: Duration = Duration::from_secs(3_600);
/// Callers that are kept count of. With more the count begins anew for all.
const CALLERS_MAX: usize = 100_000;
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
}

impl Allowance {
    /// Takes what the answer to so many commands is worth, or refuses.
    pub fn take(&self, caller: &str, commands: usize, bytes_max: u64) -> Result<(), Problem> {
        self.take_at(caller, commands, bytes_max, Instant::now())
    }

    fn take_at(&self, caller: &str, commands: usize, bytes_max: u64, now: Instant) -> Result<(), Problem> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= CALLERS_MAX && !callers.contains_key(caller) {
            callers.retain(|_, used| now.duration_since(used.since) < HOUR);
            if callers.len() >= CALLERS_MAX {
                callers.clear();
            }
        }
        if !callers.contains_key(caller) {
            callers.insert(caller.to_owned(), Used { since: now, bytes: 0 });
        }
        let Some(used) = callers.get_mut(caller) else { return Ok(()) };
        if now.duration_since(used.since) >= HOUR {
            *used = Used { since: now, bytes: 0 };
        }
        let bytes = used.bytes.saturating_add(ANSWER_BYTES.saturating_mul(1 + commands as u64));
        if bytes <= bytes_max {
            used.bytes = bytes;
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
        let take =
            |caller: &str, commands, at| allowance.take_at(caller, commands, 4 * ANSWER_BYTES, start + at).is_ok();
        assert!(take("alice", 1, Duration::ZERO) && take("alice", 1, HOUR / 2));
        assert!(!take("alice", 1, HOUR / 2) && take("bob", 3, HOUR / 2));
        assert!(!take("bob", 100, HOUR), "never more at once than in all");
        assert!(take("alice", 3, HOUR));
    }
}
