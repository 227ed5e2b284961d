//! What happens to a subject as a whole: forgotten, suspended, restored.

pub(crate) mod forget;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

use crate::decide::Context;
use crate::id::SubjectId;
use crate::job::JobReply;
use crate::operation::{About, Operation, operations};
use crate::permission::Permission;
use crate::rows::JobKind;
use crate::view::{Stop, View};

pub(crate) use forget::{Counted, Going, each, take_row};
pub(crate) use rule::{check_name, end_forgetting, read};

/// Begins to remove every edge of a subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forget {
    /// The subject.
    pub subject: SubjectId,
}

/// Begins to hide every edge of a subject, and refuses new ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suspend {
    /// The subject.
    pub subject: SubjectId,
}

/// Begins to show them again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restore {
    /// The subject.
    pub subject: SubjectId,
}

operations!(Subject: Forget, Suspend, Restore; counts nothing);

impl Operation for Forget {
    type Reply = JobReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
        rule::forget(&self.subject, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::ForgetSubject).subject(&self.subject).begins(JobKind::Forget, self.subject.as_str())
    }
}

impl Operation for Suspend {
    type Reply = JobReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
        rule::suspend(&self.subject, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::SuspendSubject).subject(&self.subject).begins(JobKind::Hide, self.subject.as_str())
    }
}

impl Operation for Restore {
    type Reply = JobReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
        rule::restore(&self.subject, context, view)
    }

    fn about(&self) -> About<'_> {
        About::caller(Permission::RestoreSubject).subject(&self.subject).begins(JobKind::Show, self.subject.as_str())
    }
}
