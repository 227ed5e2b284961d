//! Clocks that are wrong by as much as the seed says.

use tally::core::time::{Stamp, Timestamp};
use tally::engine::Clock;
use tokio::time::Instant;

/// When every run begins: 2026-01-01.
const BEGIN_US: i64 = 1_767_225_600_000_000;

/// A clock over the virtual time of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimClock {
    begin: Instant,
    /// So far ahead of the truth it was at the beginning; negative is behind.
    ahead_us: i64,
    /// So many microseconds it gains in a second.
    drift_us: i64,
}

impl SimClock {
    pub(crate) fn new(begin: Instant, ahead_us: i64, drift_us: i64) -> Self {
        Self { begin, ahead_us, drift_us }
    }

    pub(crate) fn stamp(&self) -> Stamp {
        let passed_us = i64::try_from(self.begin.elapsed().as_micros()).unwrap_or(i64::MAX);
        let us = BEGIN_US + self.ahead_us + passed_us + passed_us / 1_000_000 * self.drift_us;
        Stamp(u64::try_from(us).unwrap_or_default())
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        self.stamp().time()
    }
}
