//! A verification: begun once however many ask for it, carried by one server at a time, its report kept.
//!
//! A recount tells of the moment at which it began. So whoever asks while one counts waits for the next, and shares it
//! with all who ask until that one begins: there are never more than two, and each ends when it has counted.
//!
//! Whoever carries it begins a round, recounts, and mends what that round found. A server that took the work over
//! begins the next round, and from then on nothing that an older round found is mended: a drift is never taken out
//! twice.

use crate::decide::Context;
use crate::error::Refusal;
use crate::job::{self, JobReply};
use crate::reply::Done;
use crate::rows::{Job, JobId, Key, Round, Row, TotalKey, VerifyReport, Work};
use crate::verify::PutRight;
use crate::view::{Stop, View};

/// A step of whoever carries a verification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Begins the next round.
    Begin,
    /// So many rows have been read.
    Read(u64),
    /// The end, with what was found.
    End {
        /// Whether what was found has been mended as well. One that should and has not goes on.
        mended: bool,
        /// What was found.
        report: Box<VerifyReport>,
    },
    /// It cannot be done.
    Fail(String),
}

/// Begins a verification, or joins the one that has not begun to count. Whoever wants repair has that one repair as well.
pub(super) fn begin(repair: bool, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
    let (running, next) = pointed_at(view)?;
    let counts = match running {
        Some(id) => open(id, view)?.map(|job| (id, job)),
        None => None,
    };
    let waits = match next {
        Some(id) => open(id, view)?.map(|job| (id, job)),
        None => None,
    };
    for (id, mut job) in counts.iter().chain(&waits).cloned() {
        if let Work::Verify { repair: repairs, round: 0, .. } = &mut job.work {
            if repair && !*repairs {
                *repairs = true;
                view.set_uncounted(Key::Job(id), Some(Row::Job(job.clone())))?;
            }
            return Ok(JobReply::new(id, &job));
        }
    }
    let work = Work::Verify { repair, round: 0, rows: 0, report: None, failure: None };
    let (id, row) = job::begin(work, context, view)?;
    let (job, next) = counts.map_or((id, None), |(counting, _)| (counting, Some(id)));
    let pointing = Job { work: Work::Verifying { job, next }, ..row.clone() };
    view.set_uncounted(Key::Job(JobId::VERIFY), Some(Row::Job(pointing)))?;
    Ok(JobReply::new(id, &row))
}

/// The verification that runs, and the one after it.
fn pointed_at(view: &mut View) -> Result<(Option<JobId>, Option<JobId>), Stop> {
    let pointing = view.kept(&Key::Job(JobId::VERIFY), Row::into_job)?;
    let Some(Job { work: Work::Verifying { job, next }, .. }) = pointing else { return Ok((None, None)) };
    Ok((Some(job), next))
}

/// A job that has not ended.
fn open(id: JobId, view: &mut View) -> Result<Option<Job>, Stop> {
    Ok(view.kept(&Key::Job(id), Row::into_job)?.filter(|job| job.finished_at.is_none()))
}

/// One step.
pub(super) fn recount(of: Round, step: &Step, context: &Context<'_>, view: &mut View) -> Result<JobReply, Stop> {
    view.want(&[Key::Job(of.job), Key::Job(JobId::VERIFY)], &[])?;
    let mut row = running(of.job, view)?;
    let Work::Verify { repair, round, rows, report: kept, failure } = &mut row.work else { return Err(no_such_job()) };
    if *round != of.number {
        return Err(over());
    }
    match step {
        Step::Begin => (*round, *rows) = (*round + 1, 0),
        Step::Read(read) => *rows = *read,
        // Somebody asked for repair in the last moment.
        Step::End { mended: false, .. } if *repair => {}
        Step::End { report, .. } => {
            row.edges = report.repaired;
            *kept = Some(report.clone());
            row.finished_at = Some(context.now());
        }
        Step::Fail(why) => {
            *failure = Some(why.clone());
            row.finished_at = Some(context.now());
        }
    }
    view.set_uncounted(Key::Job(of.job), Some(Row::Job(row.clone())))?;
    let (running, next) = pointed_at(view)?;
    if row.finished_at.is_some() && running == Some(of.job) {
        let pointing =
            next.map(|job| Job { work: Work::Verifying { job, next: None }, finished_at: None, ..row.clone() });
        view.set_uncounted(Key::Job(JobId::VERIFY), pointing.map(Row::Job))?;
    }
    Ok(JobReply::new(of.job, &row))
}

/// Adds what a recount found missing, unless the round that found it is over.
pub(super) fn repair(found_in: Option<Round>, total: &TotalKey, by: i64, view: &mut View) -> Result<Done, Stop> {
    still_on(found_in, view)?;
    view.add(total, by)?;
    Ok(Done { changed: by != 0 })
}

/// Puts right what rows say of each other, by what they are now: it may have come right meanwhile.
pub(super) fn put_right(command: &PutRight, view: &mut View) -> Result<Done, Stop> {
    still_on(command.found_in, view)?;
    Ok(Done { changed: command.fact.put_right(command.who.as_ref(), view)? })
}

/// Refuses what was found in a round that is over.
fn still_on(found_in: Option<Round>, view: &mut View) -> Result<(), Stop> {
    match found_in {
        Some(round) if !matches!(running(round.job, view)?.work, Work::Verify { round: now, .. } if now == round.number) => {
            Err(over())
        }
        Some(_) | None => Ok(()),
    }
}

/// The job, which the decision stands on.
fn running(id: JobId, view: &mut View) -> Result<Job, Stop> {
    match view.kept(&Key::Job(id), Row::into_job)? {
        Some(job) if job.finished_at.is_none() => Ok(job),
        Some(_) => Err(over()),
        None => Err(no_such_job()),
    }
}

fn over() -> Stop {
    Refusal::Conflict("this round of the verification is over".into()).into()
}

fn no_such_job() -> Stop {
    Refusal::NotFound("there is no such verification".into()).into()
}
