//! A verification: begun once however many ask for it, carried by one server at a time, its report kept.
//!
//! Whoever carries it begins a round, recounts, and mends what that round found. A server that took the work over
//! begins the next round, and from then on nothing that an older round found is mended: a drift is never taken out
//! twice.

use crate::command::{JobReply, Reply};
use crate::decide::Context;
use crate::error::Refusal;
use crate::rows::{Job, JobId, Key, Round, Row, TotalKey, VerifyReport, Work};
use crate::rules::job;
use crate::view::{Stop, View};

/// A step of whoever carries a verification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recount {
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

/// Begins a verification, or joins the one that runs. Whoever wants repair has that one repair as well.
pub fn begin(repair: bool, context: &Context<'_>, view: &mut View) -> Result<Reply, Stop> {
    let pointer = Key::Job(JobId::VERIFY);
    if let Some(Row::Job(Job { work: Work::Verifying { job }, .. })) = view.row_uncounted(&pointer)?
        && let Some(Row::Job(mut running)) = view.row_uncounted(&Key::Job(job))?
        && running.finished_at.is_none()
        && let Work::Verify { repair: repairs, .. } = &mut running.work
    {
        if repair && !*repairs {
            *repairs = true;
            view.set_uncounted(Key::Job(job), Some(Row::Job(running.clone())))?;
        }
        return Ok(Reply::Job(JobReply::new(job, &running)));
    }
    let work = Work::Verify { repair, round: 0, rows: 0, report: None, failure: None };
    let (id, row) = job::begin(work, context, view)?;
    let pointing = Job { work: Work::Verifying { job: id }, ..row.clone() };
    view.set_uncounted(pointer, Some(Row::Job(pointing)))?;
    Ok(Reply::Job(JobReply::new(id, &row)))
}

/// One step.
pub fn recount(of: Round, step: &Recount, context: &Context<'_>, view: &mut View) -> Result<Reply, Stop> {
    view.want(&[Key::Job(of.job), Key::Job(JobId::VERIFY)], &[])?;
    let mut row = running(of.job, view)?;
    let Work::Verify { repair, round, rows, report: kept, failure } = &mut row.work else { return Err(no_such_job()) };
    if *round != of.number {
        return Err(over());
    }
    match step {
        Recount::Begin => (*round, *rows) = (*round + 1, 0),
        Recount::Read(read) => *rows = *read,
        // Somebody asked for repair in the last moment.
        Recount::End { mended: false, .. } if *repair => {}
        Recount::End { report, .. } => {
            row.edges = report.repaired;
            *kept = Some(report.clone());
            row.finished_at = Some(context.now());
        }
        Recount::Fail(why) => {
            *failure = Some(why.clone());
            row.finished_at = Some(context.now());
        }
    }
    view.set_uncounted(Key::Job(of.job), Some(Row::Job(row.clone())))?;
    let points_here =
        |pointer: &Row| matches!(pointer, Row::Job(Job { work: Work::Verifying { job }, .. }) if *job == of.job);
    if row.finished_at.is_some() && view.row_uncounted(&Key::Job(JobId::VERIFY))?.as_ref().is_some_and(points_here) {
        view.set_uncounted(Key::Job(JobId::VERIFY), None)?;
    }
    Ok(Reply::Job(JobReply::new(of.job, &row)))
}

/// Adds what a recount found missing, unless the round that found it is over.
pub fn repair(found_in: Option<Round>, total: &TotalKey, by: i64, view: &mut View) -> Result<Reply, Stop> {
    if let Some(round) = found_in
        && !matches!(running(round.job, view)?.work, Work::Verify { round: now, .. } if now == round.number)
    {
        return Err(over());
    }
    view.add(total, by)?;
    Ok(Reply::Done { changed: by != 0 })
}

/// The job, which the decision stands on.
fn running(id: JobId, view: &mut View) -> Result<Job, Stop> {
    match view.row_uncounted(&Key::Job(id))? {
        Some(Row::Job(job)) if job.finished_at.is_none() => Ok(job),
        Some(Row::Job(_)) => Err(over()),
        _ => Err(no_such_job()),
    }
}

fn over() -> Stop {
    Refusal::Conflict("this round of the verification is over".into()).into()
}

fn no_such_job() -> Stop {
    Refusal::NotFound("there is no such verification".into()).into()
}
