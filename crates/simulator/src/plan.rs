//! What a seed stands for: how wrong the clocks are, what is lost, who dies when.

use std::time::Duration;

use tally::core::view::Reading;

use crate::random::Random;

const HOUR_US: i64 = 3_600_000_000;

/// Something done wrong on purpose, to see that it is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Flaw {
    /// Nothing is.
    None,
    /// A load that wants nothing is given the server's own time.
    OwnTime,
    /// Each part of the store has a clock of its own, and a load is given the latest of those that it asked.
    TimesOfParts,
    /// Nobody looks again at what a lost message would have told.
    NeverLooksAgain,
    /// What is to be told to other servers begins to gather anew at every event.
    GathersAnew,
    /// What is due is looked for by the server's own clock, and again and again although nothing changes.
    LooksByOwnClock,
    /// A lease never lapses, so that what a dead server had is nobody's.
    LeasesForEver,
    /// A commit is taken whatever has moved.
    ChecksNothing,
    /// A commit that is said to be taken sometimes is not.
    LosesCommits,
}

/// What one run is like.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// No faults at all, and a load that never pauses: then everything is known at once.
    pub(crate) calm: bool,
    /// Servers' clocks: how far ahead, and what they gain in a second.
    pub(crate) clocks: Vec<(i64, i64)>,
    /// Clocks of the store's parts; the first is the store's.
    pub(crate) parts: Vec<i64>,
    /// How little is asked of the store.
    pub(crate) reading: Reading,
    /// Whether its parts are asked at different moments, as those of a Cluster are.
    pub(crate) in_parts: bool,
    /// How often in a hundred a call to the store fails on its way, and its answer on the way back.
    pub(crate) call_loss: u64,
    /// How often in a hundred a message is lost, or arrives twice.
    pub(crate) message_loss: u64,
    pub(crate) message_twice: u64,
    /// How long clients and faults go on.
    pub(crate) busy_for: Duration,
    /// Operations of each client.
    pub(crate) operations: u64,
    pub(crate) flaw: Flaw,
}

impl Plan {
    pub(crate) fn new(random: &Random, flaw: Flaw) -> Self {
        let calm = random.percent(12);
        let servers = 2 + random.below(2) as usize;
        let ahead = |random: &Random| match random.below(4) {
            0 => 0,
            1 => HOUR_US,
            2 => -HOUR_US,
            _ => random.below(2_000_000) as i64 - 1_000_000,
        };
        let drift = |random: &Random| random.below(2_001) as i64 - 1_000;
        let clocks = (0..servers).map(|_| (ahead(random), drift(random))).collect();
        let parts = (0..3).map(|part| if part == 0 { 0 } else { ahead(random) }).collect();
        let chance = |random: &Random, most: u64| if calm || random.percent(30) { 0 } else { random.below(most) };
        Self {
            calm,
            clocks,
            parts,
            reading: *random.pick(&[Reading::Lean, Reading::Counted]),
            in_parts: random.percent(50),
            call_loss: chance(random, 8),
            message_loss: chance(random, 60),
            message_twice: chance(random, 30),
            busy_for: Duration::from_secs(15 + random.below(15)),
            operations: 20 + random.below(30),
            flaw,
        }
    }
}
