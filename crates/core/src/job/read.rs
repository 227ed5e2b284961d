//! Reading how far a job is.

pub use super::JobReply;
use crate::error::Refusal;
use crate::id::SubjectId;
use crate::permission::Permission;
use crate::query::{Ask, Question, questions};
use crate::read::{Halt, Sight};
use crate::rows::{JobId, JobKind, Key, Row, Work};

/// A job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobQuery {
    /// The job.
    pub job: JobId,
    /// Who asks, where it may be their own.
    pub viewer: Option<SubjectId>,
}

questions!(Job: Job(JobQuery) -> JobReply);

impl Question for JobQuery {
    type Answer = JobReply;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        let own = self.viewer.as_ref().filter(|viewer| {
            [JobKind::Forget, JobKind::Hide, JobKind::Show]
                .into_iter()
                .any(|kind| JobId::of(kind, viewer.as_str()) == self.job)
        });
        ask(Ask::of(Permission::ReadJob).about(own));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<JobReply, Halt> {
        let found = sight.row(|| Key::Job(self.job))?.and_then(Row::into_job);
        match found.filter(|job| !matches!(job.work, Work::Verifying { .. })) {
            Some(job) => Ok(JobReply::new(self.job, &job)),
            None => Err(Refusal::NotFound(format!("there is no job `{}`", self.job.text())).into()),
        }
    }
}
