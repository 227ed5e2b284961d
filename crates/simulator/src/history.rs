//! What clients asked, when, and what they were told.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tally::core::Refusal;
use tally::core::command::Command;
use tally::core::reply::Reply;
use tokio::time::Instant;

/// One request, or one try of it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) command: Command,
    /// Requests with the same key are one.
    pub(crate) once: Option<String>,
    /// Moments are numbers that only grow.
    pub(crate) asked: u64,
    pub(crate) asked_at: Instant,
    pub(crate) answered: Option<Answered>,
}

#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) moment: u64,
    pub(crate) at: Instant,
    /// Nothing when nobody knows whether it was done.
    pub(crate) reply: Option<Result<Reply, Refusal>>,
}

impl Asked {
    /// What was answered, where something was.
    pub(crate) fn reply(&self) -> Option<&Result<Reply, Refusal>> {
        self.answered.as_ref()?.reply.as_ref()
    }
}

/// All of them, in the order in which they were asked.
#[derive(Default)]
pub(crate) struct History {
    log: Mutex<(Vec<Asked>, u64)>,
}

impl History {
    fn log(&self) -> MutexGuard<'_, (Vec<Asked>, u64)> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ask(&self, command: Command, once: Option<String>) -> usize {
        let mut log = self.log();
        log.1 += 1;
        let asked = log.1;
        log.0.push(Asked { command, once, asked, asked_at: Instant::now(), answered: None });
        log.0.len() - 1
    }

    pub(crate) fn answer(&self, number: usize, reply: Option<Result<Reply, Refusal>>) {
        let mut log = self.log();
        log.1 += 1;
        let moment = log.1;
        log.0[number].answered = Some(Answered { moment, at: Instant::now(), reply });
    }

    pub(crate) fn all(&self) -> Vec<Asked> {
        self.log().0.clone()
    }
}
