//! What happens to a subject as a whole: forgotten, suspended, restored.

use crate::command::{JobReply, Reply};
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::SubjectId;
use crate::rows::{Key, Row, Subject, Work};
use crate::rules::job;
use crate::view::{Stop, View};

/// Begins to remove everything that the subject has done until now.
pub fn forget(subject: &SubjectId, context: &Context<'_>, view: &mut View) -> Result<Reply, Stop> {
    let key = Key::Subject(subject.clone());
    let suspended = view.row_uncounted(&key)?.is_some();
    let (job, row) = job::begin(Work::Forget { subject: subject.clone() }, context, view)?;
    if suspended {
        view.set(key, None)?;
    }
    Ok(Reply::Job(JobReply::new(job, &row)))
}

/// Begins to hide the subject's edges. From this commit on it can make no new ones.
pub fn suspend(subject: &SubjectId, context: &Context<'_>, view: &mut View) -> Result<Reply, Stop> {
    let key = Key::Subject(subject.clone());
    if view.row_uncounted(&key)?.is_some() {
        return Err(Refusal::Conflict(format!("the subject `{subject}` is suspended already")).into());
    }
    let (job, row) = job::begin(Work::Hide { subject: subject.clone() }, context, view)?;
    view.set(key, Some(Row::Subject(Subject { suspended_at: context.now(), job })))?;
    Ok(Reply::Job(JobReply::new(job, &row)))
}

/// Begins to show them again, with their times.
pub fn restore(subject: &SubjectId, context: &Context<'_>, view: &mut View) -> Result<Reply, Stop> {
    let key = Key::Subject(subject.clone());
    if view.row_uncounted(&key)?.is_none() {
        return Err(Refusal::Conflict(format!("the subject `{subject}` is not suspended")).into());
    }
    let (job, row) = job::begin(Work::Show { subject: subject.clone() }, context, view)?;
    view.set(key, None)?;
    Ok(Reply::Job(JobReply::new(job, &row)))
}
