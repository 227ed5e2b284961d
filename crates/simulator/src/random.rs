//! Numbers that look random and are the same for a seed on every machine.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// SplitMix64, shared by everything that happens in one run.
pub(crate) struct Random(Mutex<u64>);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    pub(crate) fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.next() % end
    }

    /// True this many times in a hundred.
    pub(crate) fn percent(&self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// From one to the other, in whole milliseconds.
    pub(crate) fn between_ms(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least + 1))
    }
}
