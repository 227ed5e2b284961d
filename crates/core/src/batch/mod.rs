//! Several commands as one.

mod rule;
#[cfg(test)]
mod tests;
mod written;

use crate::decide::Context;
use crate::operation::{About, Operation, Wakes, operations};
use crate::reply::BatchReply;
use crate::view::{Stop, View};

pub use written::Written;

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

operations!(Batch: Batch, Rehearse);

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
