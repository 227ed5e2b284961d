//! The network, and where it is cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tally_testing::{Cut, Direction, Proxy};

use super::Networked;
use crate::stand::Stand;

/// Before and after what is asked, and before and after what is answered.
pub(super) const WAYS: [(Cut, Direction); 4] = [
    (Cut::Before, Direction::Request),
    (Cut::After, Direction::Request),
    (Cut::Before, Direction::Answer),
    (Cut::After, Direction::Answer),
];

/// Nobody needs as many to commit something.
const MESSAGES_MAX: usize = 24;

/// Whether a commit or its look-up comes first is a race, so each way is gone several times.
const ROUNDS: usize = 5;

/// All that leads to a store.
pub(super) struct Wires(Vec<Proxy>);

impl<F: Networked> Stand<F> {
    /// The network, and the same store through it, which is waited for.
    pub(super) fn behind(&self) -> (Wires, Self) {
        self.behind_within(10_000)
    }

    /// The same, where it is soon given up.
    pub(super) fn behind_shortly(&self) -> (Wires, Self) {
        self.behind_within(500)
    }

    fn behind_within(&self, timeout_ms: u64) -> (Wires, Self) {
        let (proxies, place) = self.factory().behind(self.place(), timeout_ms);
        (Wires(proxies), Self::of(self.factory().clone(), place))
    }
}

impl Wires {
    pub(super) fn pass(&self) {
        self.0.iter().for_each(Proxy::pass);
    }

    pub(super) fn cut(&self) {
        self.0.iter().for_each(Proxy::cut);
    }

    pub(super) fn hang(&self) {
        self.0.iter().for_each(Proxy::hang);
    }

    pub(super) fn drop_answers(&self) {
        self.0.iter().for_each(Proxy::drop_answers);
    }

    pub(super) fn delay(&self, by: Duration) {
        self.0.iter().for_each(|proxy| proxy.delay(by));
    }

    /// Cuts at every so-manieth message this way, whatever is in it.
    pub(super) fn cut_every(&self, nth: usize, (cut, side): (Cut, Direction)) {
        let seen = Arc::new(AtomicUsize::new(0));
        self.cut_when(cut, move |direction| {
            direction == side && seen.fetch_add(1, Ordering::SeqCst).is_multiple_of(nth)
        });
    }

    fn cut_when(&self, cut: Cut, matches: impl Fn(Direction) -> bool + Clone + Send + Sync + 'static) {
        for proxy in &self.0 {
            let matches = matches.clone();
            proxy.cut_when(cut, move |direction, _| matches(direction));
        }
    }
}

/// Every spot at which something can be cut: one message after the other, for as long as there are any.
///
/// Every other time nothing is cut: what a new connection does for the first time may be explained to the store in messages of
/// its own, and those that matter would never be reached.
pub(super) struct Spots<'a> {
    wires: &'a Wires,
    is_first: bool,
    way: usize,
    message: usize,
    was_cut: Arc<AtomicBool>,
}

impl<'a> Spots<'a> {
    pub(super) fn of(wires: &'a Wires) -> Self {
        Self { wires, is_first: true, way: 0, message: 0, was_cut: Arc::default() }
    }

    /// Cuts at the next spot, counted from now, once.
    pub(super) fn arm(&self) {
        if self.is_first {
            return;
        }
        let (cut, side) = WAYS[self.way % WAYS.len()];
        let (seen, message, was_cut) = (Arc::new(AtomicUsize::new(0)), self.message, self.was_cut.clone());
        self.wires.cut_when(cut, move |direction| {
            let found = direction == side && seen.fetch_add(1, Ordering::SeqCst) == message;
            was_cut.fetch_or(found, Ordering::SeqCst);
            found
        });
    }

    /// Passes everything on again. False after the last spot.
    pub(super) fn step(&mut self) -> bool {
        self.is_first = !self.is_first;
        if !self.is_first {
            return true;
        }
        self.wires.pass();
        let was_cut = self.was_cut.swap(false, Ordering::SeqCst);
        assert!(was_cut || self.message > 0, "{self}: nothing was cut");
        self.message += 1;
        if !was_cut || self.message == MESSAGES_MAX {
            (self.way, self.message) = (self.way + 1, 0);
        }
        self.way < ROUNDS * WAYS.len()
    }
}

impl std::fmt::Display for Spots<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (cut, side) = WAYS[self.way % WAYS.len()];
        write!(to, "cut {cut:?} message {} of {side:?}s", self.message)
    }
}
