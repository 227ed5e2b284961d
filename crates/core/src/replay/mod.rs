//! Answers that are remembered, so that a request that is sent again has one effect.

mod remembered;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

use crate::decide::Context;
use crate::operation::{About, Operation, operations};
use crate::reply::Done;
use crate::rows::ReplayKey;
use crate::view::{Stop, View};

pub(crate) use rule::decide;

/// Drops remembered answers that have expired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpireReplays {
    /// Which; those that are still needed are kept.
    pub replays: Vec<ReplayKey>,
}

operations!(Replay: ExpireReplays; counts nothing);

impl Operation for ExpireReplays {
    type Reply = Done;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
        rule::expire(&self.replays, context, view)
    }

    fn about(&self) -> About<'_> {
        About::system().weighing(self.replays.len())
    }
}
