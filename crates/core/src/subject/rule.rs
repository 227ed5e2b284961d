//! What happens to a subject as a whole: forgotten, suspended, restored.

use std::collections::BTreeMap;

use crate::command::Command;
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::job::{self, JobReply};
use crate::rows::{Forgotten, Job, JobId, JobKind, Key, Row, Subject, Suspension, TotalKey, Work};
use crate::view::{Stop, View};

/// Refuses whatever would make somebody called `me`: whoever asks is meant by it, so nobody could suspend or forget such a
/// one. What takes away passes, so that one who was made so before can go.
pub(crate) fn check_name(command: &Command) -> Result<(), Refusal> {
    let about = command.about();
    if about.makes_subject && about.names.subject.is_some_and(SubjectId::is_me) {
        return Err(Refusal::bad_request("`me` stands for the subject of a user's token, and is no subject's name"));
    }
    Ok(())
}

/// Reads what is known about a subject.
pub(crate) fn read(subject: &SubjectId, view: &mut View) -> Result<Subject, Stop> {
    Ok(view.kept(&Key::Subject(subject.clone()), Row::into_subject)?.unwrap_or_default())
}

/// Begins to remove everything that the subject has done until now. From this commit on it counts as gone for whatever
/// the subject does. A suspension stays: forgetting oneself is no way out of it.
pub(super) fn forget(subject: &SubjectId, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
    let limited = context.catalog.relations().filter(|relation| relation.limit_per_subject.is_some());
    let totals: BTreeMap<Name, TotalKey> = limited
        .map(|relation| {
            let (subject, relation) = (subject.clone(), relation.name.clone());
            (relation.clone(), TotalKey::Subject { subject, relation })
        })
        .collect();
    let key = Key::Subject(subject.clone());
    let rows = [key.clone(), Key::Job(JobId::of(JobKind::Forget, subject.as_str())), Key::Names];
    view.want(&rows, &totals.values().cloned().collect::<Vec<_>>())?;
    let known = read(subject, view)?;
    let mut left = BTreeMap::new();
    for (relation, total) in totals {
        // Held against the commit: an edge that comes meanwhile is counted among them, or is not.
        left.insert(relation, view.total_decided(&total)?);
    }
    left.retain(|_, left| *left > 0);
    super::forget::at_once(subject, context, view)?;
    let (job, row) = job::begin(Work::Forget { subject: subject.clone() }, context, view)?;
    let forgotten = Some(Forgotten { before: row.before, left });
    view.set_uncounted(key, Subject { forgotten, ..known }.into_row())?;
    Ok(JobReply::new(job, &row))
}

/// Begins to hide the subject's edges. From this commit on it can make no new ones. Asked for again, it is the same job.
pub(super) fn suspend(subject: &SubjectId, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
    let known = read(subject, view)?;
    if let Some(Suspension { at, job }) = known.suspended {
        return Ok(match find(job, view)? {
            Some(row) => JobReply::new(job, &row),
            None => JobReply::forgotten(job, JobKind::Hide, at),
        });
    }
    let (job, row) = job::begin(Work::Hide { subject: subject.clone() }, context, view)?;
    let suspended = Some(Suspension { at: context.now(), job });
    view.set(Key::Subject(subject.clone()), Subject { suspended, ..known }.into_row())?;
    Ok(JobReply::new(job, &row))
}

/// Begins to show them again, with their times. Asked for again, it is the same job, as long as that is known.
pub(super) fn restore(subject: &SubjectId, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
    let known = read(subject, view)?;
    if known.suspended.is_none() {
        let job = JobId::of(JobKind::Show, subject.as_str());
        return match find(job, view)? {
            Some(row) => Ok(JobReply::new(job, &row)),
            None => Err(Refusal::Conflict(format!("the subject `{subject}` is not suspended")).into()),
        };
    }
    let (job, row) = job::begin(Work::Show { subject: subject.clone() }, context, view)?;
    view.set(Key::Subject(subject.clone()), Subject { suspended: None, ..known }.into_row())?;
    Ok(JobReply::new(job, &row))
}

fn find(job: JobId, view: &mut View) -> Result<Option<Job>, Stop> {
    view.kept(&Key::Job(job), Row::into_job)
}

/// The job is done: nothing older than it is left, so there is nothing to tell apart any more.
pub(crate) fn end_forgetting(subject: &SubjectId, view: &mut View) -> Result<(), Stop> {
    let known = read(subject, view)?;
    if known.forgotten.is_some() {
        view.set_uncounted(Key::Subject(subject.clone()), Subject { forgotten: None, ..known }.into_row())?;
    }
    Ok(())
}
