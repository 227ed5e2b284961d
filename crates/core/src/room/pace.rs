//! How long somebody still waits, as far as anybody can say.

use super::def::RoomSettings;
use super::rows::{Gate, Room};
use crate::time::Timestamp;

/// A step in which admissions are counted.
pub(super) const STEP_MS: u64 = 10_000;
/// How many of them an estimate goes by.
pub(super) const STEPS: u64 = 6;

/// How fast a queue moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pace {
    /// So many millionths a second by the room's rate; none while nobody is let in.
    pub rate: Option<u64>,
    /// The same as seen during the last minute, where enough was seen.
    pub seen: Option<u64>,
    /// Whether it waits for somebody inside to finish: then the rate alone says nothing.
    pub is_full: bool,
}

/// An estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Estimate {
    /// The likeliest.
    pub ms: u64,
    /// Hardly less, and hardly more.
    pub range_ms: [u64; 2],
}

impl Pace {
    /// Of a room as it is now.
    pub fn of(room: &Room, gate: Option<&Gate>, now: Timestamp) -> Self {
        let RoomSettings { rate_per_s, mode, .. } = &*room.settings;
        let rate = match mode {
            super::Mode::Auto | super::Mode::Drain => Some(rate_per_s.micros),
            super::Mode::Off => Some(u64::MAX),
            super::Mode::Hold | super::Mode::Reject => None,
        };
        Self { rate, seen: gate.and_then(|gate| seen(gate, now)), is_full: gate.is_some_and(|gate| gate.is_full) }
    }

    /// How long until so many have been let in.
    pub fn estimate(&self, ahead: u64) -> Option<Estimate> {
        let rate = self.rate?;
        let slowest = match (self.seen, self.is_full) {
            (Some(seen), _) => seen.min(rate),
            (None, false) => rate,
            (None, true) => return None,
        };
        let take = |rate: u64| (u128::from(ahead + 1) * 1_000_000_000 / u128::from(rate.max(1))) as u64;
        let ms = take(slowest);
        Some(Estimate { ms, range_ms: [take(rate).min(ms), ms.saturating_mul(3) / 2] })
    }
}

/// What was let in during the last minute, in millionths a second. Nothing where too little was seen to tell.
fn seen(gate: &Gate, now: Timestamp) -> Option<u64> {
    let step = now.0 / STEP_MS;
    let within = gate.recent.let_in.iter().filter(|(at, _)| *at < step && at + STEPS >= step);
    let (mut first, mut count) = (step, 0);
    for (at, let_in) in within {
        first = first.min(*at);
        count += let_in;
    }
    (count > 0).then(|| count * 1_000_000_000 / ((step - first) * STEP_MS).max(1))
}

/// When to ask again: seldom far back, often near the head, and not all at once.
pub fn poll_after_ms(ahead: Option<u64>, seq: u64, now: Timestamp) -> u64 {
    let base = match ahead {
        Some(0..=50) => 1_000,
        Some(51..=1_000) => 3_000,
        Some(1_001..=20_000) => 8_000,
        Some(_) => 15_000,
        None => 5_000,
    };
    let jitter = crate::hash::fingerprint(&[&seq.to_le_bytes(), &now.0.to_le_bytes()]) % (base / 2);
    base * 3 / 4 + jitter
}
