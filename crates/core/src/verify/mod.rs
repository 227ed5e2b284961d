//! Recounting everything, as a job with a report.

mod fact;
mod ledger;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

use crate::decide::Context;
use crate::job::JobReply;
use crate::operation::{About, Operation, operations};
use crate::permission::Permission;
use crate::reply::Done;
use crate::rows::{Key, Round, TotalKey};
use crate::view::{Stop, View};

pub(crate) use fact::{Audit, Claims, Owner, Said, facts};
pub use fact::{Fact, Judged, Known, Wrong};
pub use ledger::Ledger;
pub use rule::Step;

/// Begins to recount everything, or joins whoever does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verify {
    /// Whether to mend what does not add up.
    pub repair: bool,
}

/// One step of a verification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recount {
    /// Of which round; before the first it is 0.
    pub of: Round,
    /// What has been done.
    pub step: Step,
}

/// Adds what a recount found missing from a total.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repair {
    /// The round that found it; once that is over, nothing is added.
    pub found_in: Option<Round>,
    /// The total.
    pub total: TotalKey,
    /// The drift, taken at one moment: right whatever has been added since.
    pub by: i64,
}

/// Puts right what rows say of each other, where a recount found that they do not agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutRight {
    /// The round that found it; once that is over, nothing is changed.
    pub found_in: Option<Round>,
    /// What is said.
    pub fact: Fact,
    /// The row that it is about, where the fact does not name it.
    pub who: Option<Key>,
}

operations!(Verify: Verify, Recount, Repair, PutRight; with Step; counts nothing);

impl Operation for Verify {
    type Reply = JobReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
        rule::begin(self.repair, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::Verify).begins_job()
    }
}

impl Operation for Recount {
    type Reply = JobReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
        rule::recount(self.of, &self.step, context, view)
    }
}

impl Operation for Repair {
    type Reply = Done;

    fn decide(&self, _context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
        rule::repair(self.found_in, &self.total, self.by, view)
    }
}

impl Operation for PutRight {
    type Reply = Done;

    fn decide(&self, _context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
        rule::put_right(self, view)
    }
}
