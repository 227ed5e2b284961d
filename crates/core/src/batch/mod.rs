//! Several commands as one.

mod rule;
#[cfg(test)]
mod tests;
mod written;

use crate::decide::Context;
use crate::error::Refusal;
use crate::operation::{About, Operation, Wakes, operations};
use crate::reply::{Answered, NamesMut, Reply, Told};
use crate::view::{Stop, View};

pub use written::Written;
pub(crate) use written::{InBatch, need, ops};

/// Several commands as one: all or none, or each on its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// All or none.
    pub atomic: bool,
    /// The commands, in order.
    pub commands: Vec<crate::command::Command>,
}

/// Says what would become of some commands, each on its own, and does nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rehearse {
    /// The commands, in order.
    pub commands: Vec<crate::command::Command>,
}

operations!(Batch: Batch, Rehearse; with Written; counts nothing);

impl Operation for Batch {
    type Reply = BatchReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<BatchReply, Stop> {
        rule::decide(self.atomic, &self.commands, context, view)
    }

    fn about(&self) -> About<'_> {
        // Each command in it is asked about.
        let wakes = self.commands.iter().map(|command| command.wakes()).fold(Wakes::default(), Wakes::and);
        About { wakes, ..About::system().weighing(self.commands.len()) }
    }
}

impl Operation for Rehearse {
    type Reply = BatchReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<BatchReply, Stop> {
        rule::rehearse(&self.commands, context, view)
    }

    fn about(&self) -> About<'_> {
        About::system().weighing(self.commands.len())
    }
}

/// An answer to each command of a batch, in order.
pub type BatchReply = Vec<Result<Reply, Refusal>>;

impl Answered for BatchReply {
    fn correct(&mut self, told: &mut Told<'_>) {
        self.iter_mut().flatten().for_each(|reply| reply.correct(told));
    }

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut::default()
    }
}
