//! What waits, and how much of it may.

use std::sync::atomic::{AtomicUsize, Ordering};

use tally_core::command::{Call, Decided};
use tokio::sync::oneshot;

use super::Failure;

/// A call and where its answer goes.
pub(super) struct Ticket {
    pub(super) call: Call,
    pub(super) weight: usize,
    answer: oneshot::Sender<Result<Decided, Failure>>,
}

impl Ticket {
    pub(super) fn new(call: Call, weight: usize) -> (Self, oneshot::Receiver<Result<Decided, Failure>>) {
        let (answer, receiver) = oneshot::channel();
        (Self { call, weight, answer }, receiver)
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    pub(super) fn answer(self, result: Result<Decided, Failure>) {
        // The caller may have gone; what was decided stands all the same.
        let _ = self.answer.send(result);
    }
}

/// Counts the commands that wait and turns away what is too much.
pub(super) struct Gate {
    inside: AtomicUsize,
    max: usize,
}

impl Gate {
    pub(super) fn new(max: usize) -> Self {
        Self { inside: AtomicUsize::new(0), max }
    }

    /// Lets `weight` commands in, unless that is too much. One call always fits an empty queue.
    pub(super) fn enter(&self, weight: usize) -> bool {
        let before = self.inside.fetch_add(weight, Ordering::AcqRel);
        if before == 0 || before + weight <= self.max {
            return true;
        }
        self.leave(weight);
        false
    }

    pub(super) fn leave(&self, weight: usize) {
        self.inside.fetch_sub(weight, Ordering::AcqRel);
    }

    pub(super) fn inside(&self) -> usize {
        self.inside.load(Ordering::Relaxed)
    }
}
