//! Long work in short steps.

pub mod read;
mod reply;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

use crate::decide::Context;
use crate::operation::{About, Operation, operations};
use crate::reply::Done;
use crate::rows::{EdgeKey, JobId};
use crate::time::Stamp;
use crate::view::{Stop, View};

pub use read::{Answer, Query};
pub use reply::JobReply;
pub(crate) use rule::begin;

/// One step of a job: these edges, or, when there are none left, its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sweep {
    /// The job.
    pub job: JobId,
    /// What the job went by when the walk over its edges began.
    pub before: Stamp,
    /// At most [`crate::limits::SWEEP_EDGES_MAX`] edges.
    pub edges: Vec<EdgeKey>,
}

/// Drops jobs that ended long enough ago.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpireJobs {
    /// Which; those that are not due are kept.
    pub jobs: Vec<JobId>,
}

operations!(Job: Sweep, ExpireJobs; counts nothing);

impl Operation for Sweep {
    type Reply = JobReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
        rule::sweep(self, context, view)
    }

    fn about(&self) -> About<'_> {
        About::system().weighing(self.edges.len())
    }
}

impl Operation for ExpireJobs {
    type Reply = Done;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
        rule::expire(&self.jobs, context, view)
    }

    fn about(&self) -> About<'_> {
        About::system().weighing(self.jobs.len())
    }
}
