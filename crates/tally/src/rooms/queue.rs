//! A room's queue in memory, as it was at one moment: who waits is everybody behind the gate but for those who are gone, so that a
//! position is a rank in a small bitmap.

use roaring::RoaringTreemap;
use tally_core::query::QueueAnswer;
use tally_core::room::rows::Phase;
use tally_core::rows::{Gate, Room, Seq};
use tally_core::time::Timestamp;
use tokio::time::Instant;

/// What is known of a room.
pub(super) struct Queue {
    pub(super) room: Box<Room>,
    pub(super) gate: Option<Gate>,
    pub(super) version: i64,
    /// Up to where the room's log is known.
    pub(super) log: u64,
    /// Everybody up to this place has been let in or is gone.
    passed: u64,
    /// The last number that was given.
    last: u64,
    /// Places behind the gate at which nobody waits any more.
    gone: RoaringTreemap,
    /// What time it was, by the store and here.
    now: Timestamp,
    pub(super) read_at: Instant,
}

fn passed(gate: Option<&Gate>) -> u64 {
    match gate.map(|gate| gate.passed) {
        Some(Seq::Given(passed)) => passed,
        // A number that is stored is given.
        Some(Seq::Taken(_)) | None => 0,
    }
}

impl Queue {
    /// As it is, with the places that are known to be gone, those before the gate among them.
    pub(super) fn new(answer: QueueAnswer, gone: RoaringTreemap, read_at: Instant) -> Self {
        let QueueAnswer { room, gate, last, version, gone_last, now, gone_up_to: _, gone: _ } = answer;
        let mut queue =
            Self { passed: passed(gate.as_ref()), room, gate, version, log: gone_last, last, gone, now, read_at };
        queue.forget_passed();
        queue
    }

    fn forget_passed(&mut self) {
        self.gone.remove_range(..=self.passed);
    }

    /// Whether an answer is about the same queue at a later moment. The doors change the order, and a room may have been made anew.
    pub(super) fn goes_on_with(&self, answer: &QueueAnswer) -> bool {
        let QueueAnswer { room, gate, version, .. } = answer;
        let same_room = room.secret == self.room.secret && room.phase == self.room.phase;
        same_room && passed(gate.as_ref()) >= self.passed && *version >= self.version
    }

    /// Takes a later moment, with the places that were given up since. Gives the tickets that do not wait any more.
    pub(super) fn go_on(&mut self, answer: QueueAnswer, gone: &[u64], read_at: Instant) -> Vec<u64> {
        let before = self.passed;
        self.gone.extend(gone.iter().copied());
        let gone_now = std::mem::take(&mut self.gone);
        *self = Self::new(answer, gone_now, read_at);
        let places = gone.iter().copied().chain(before + 1..=self.passed);
        places.map(|place| self.room.at_place(place)).collect()
    }

    /// How many wait before a ticket; nothing unless it waits.
    pub(super) fn ahead(&self, seq: u64) -> Option<u64> {
        if self.room.phase != Phase::Open || seq == 0 || seq > self.last {
            return None;
        }
        let place = self.room.place(seq);
        if place <= self.passed || self.gone.contains(place) {
            return None;
        }
        Some(place - self.passed - 1 - self.gone.rank(place))
    }

    /// Whether a number was given after this moment.
    pub(super) fn is_before(&self, seq: u64) -> bool {
        seq > self.last
    }

    /// What time it is by the store, as far as it can be known here.
    pub(super) fn now(&self) -> Timestamp {
        self.now.plus_ms(self.read_at.elapsed().as_millis() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tally_core::room::RoomSettings;

    use super::*;

    fn answer(passed: u64, last: u64, version: i64) -> QueueAnswer {
        let at = Timestamp(1);
        let room = Room {
            settings: Arc::new(RoomSettings::default()),
            declared: None,
            secret: "secret".into(),
            seed: "seed".into(),
            phase: Phase::Open,
            early: Some(0),
            awake: true,
            created_at: at,
        };
        let gate = Gate {
            passed: Seq::Given(passed),
            budget: 0,
            budget_at: at,
            due_at: at,
            is_full: false,
            swept: 0,
            recent: Box::default(),
        };
        let (room, gate) = (Box::new(room), Some(gate));
        QueueAnswer { room, gate, last, version, gone_up_to: 0, gone_last: 0, gone: None, now: at }
    }

    #[tokio::test]
    async fn a_position_is_a_rank_of_those_who_wait() {
        let mut queue = Queue::new(answer(2, 10, 1), [1, 4, 7].into_iter().collect(), Instant::now());
        let all = |queue: &Queue| (0..=12).map(|seq| queue.ahead(seq)).collect::<Vec<_>>();
        let (no, at) = (None, Some);
        assert_eq!(all(&queue), [no, no, no, at(0), no, at(1), at(2), no, at(3), at(4), at(5), no, no]);
        assert!(queue.goes_on_with(&answer(5, 11, 3)));
        let left = queue.go_on(answer(5, 11, 3), &[9], Instant::now());
        assert_eq!(left, [9, 3, 4, 5]);
        assert_eq!(all(&queue), [no, no, no, no, no, no, at(0), no, at(1), no, at(2), at(3), no]);
        assert!(!queue.goes_on_with(&answer(4, 11, 3)) && !queue.goes_on_with(&answer(5, 11, 2)));
    }
}
