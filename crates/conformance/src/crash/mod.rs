//! A failure at any step of a history: what was answered is there, and what was not is there as a
//! whole or not at all.

mod crowd;
mod every_step;
mod numbers;
mod world;

use crate::{Case, EngineFactory, cases};

/// Every case.
pub(crate) fn cases<F: EngineFactory>() -> Vec<Case<F>> {
    cases![
        every_step: refused_at_every_step, answer_lost_at_every_step;
        crowd: refused_while_many_are_waiting, answer_lost_while_many_are_waiting;
        numbers: numbers_when_a_step_is_refused, numbers_when_an_answer_is_lost;
    ]
}
