//! A subject as a whole, and the jobs that such calls begin.

use axum::extract::State;
use axum::http::StatusCode;
use tally::core::command::{Command, JobReply};
use tally::core::rows::{JobId, JobKind};
use tally::core::{Code, Query, SubjectId};

use super::{Outcome, ask};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::problem::Problem;
use crate::http::reply;
use crate::http::request::{Caller, Segments};

async fn begin(
    app: &App,
    caller: &Caller,
    permission: Permission,
    subject: &str,
    command: impl FnOnce(SubjectId) -> Command,
) -> Outcome {
    caller.signed_in()?;
    let subject = caller.subject(subject)?;
    caller.may(permission, Some(&subject), None)?;
    reply::decided(StatusCode::ACCEPTED, caller.apply(app, command(subject), None).await?)
}

/// Forget a subject everywhere
///
/// Removes everything that it has done until now, with every count right. What it does from now on is a new life, and
/// stays. Asked for again before it is done, it is the same job, which then also takes what has come since.
#[utoipa::path(
    delete, path = "/v1/subjects/{subject}", tag = "Subjects",
    params(("subject" = String, Path, description = "Whom; `me` for a user's own token")),
    responses((status = 202, description = "The job that does it", body = JobReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn forget(State(app): State<App>, caller: Caller, Segments(subject): Segments<String>) -> Outcome {
    begin(&app, &caller, Permission::ForgetSubject, &subject, |subject| Command::Forget { subject }).await
}

/// Suspend a subject
///
/// Hides its edges from lists and counts, and refuses new ones, until it is restored. Forgetting does not lift it. Asked
/// for again, it is the same job.
#[utoipa::path(
    post, path = "/v1/subjects/{subject}/suspend", tag = "Subjects",
    params(("subject" = String, Path, description = "Whom")),
    responses((status = 202, description = "The job that does it", body = JobReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn suspend(State(app): State<App>, caller: Caller, Segments(subject): Segments<String>) -> Outcome {
    begin(&app, &caller, Permission::SuspendSubject, &subject, |subject| Command::Suspend { subject }).await
}

/// Restore a suspended subject
///
/// Brings its edges back with their times. Asked for again, it is the same job.
#[utoipa::path(
    post, path = "/v1/subjects/{subject}/restore", tag = "Subjects",
    params(("subject" = String, Path, description = "Whom")),
    responses((status = 202, description = "The job that does it", body = JobReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn restore(State(app): State<App>, caller: Caller, Segments(subject): Segments<String>) -> Outcome {
    begin(&app, &caller, Permission::RestoreSubject, &subject, |subject| Command::Restore { subject }).await
}

/// Whether a job is about a subject. A job is named after what it does to whom, so this needs no look at it: a user is
/// told the same of every job that is not its own, whether or not there is one.
fn is_about(job: Option<JobId>, subject: &SubjectId) -> bool {
    let own = [JobKind::Forget, JobKind::Hide, JobKind::Show].map(|kind| JobId::of(kind, subject.as_str()));
    job.is_some_and(|job| own.contains(&job))
}

/// How far is a job?
///
/// A user may ask for those that are about itself. A job that has ended is kept for `jobs.keep`, a week by default.
#[utoipa::path(
    get, path = "/v1/jobs/{job}", tag = "Running",
    params(("job" = String, Path, description = "`job` of the answer that began it")),
    responses((status = 200, description = "The job", body = JobReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_job(State(app): State<App>, caller: Caller, Segments(job): Segments<String>) -> Outcome {
    caller.signed_in()?;
    let id = JobId::parse(&job);
    caller.may(Permission::ReadJob, caller.own_subject().filter(|own| is_about(id, own)), None)?;
    let id = id.ok_or_else(|| Problem::new(Code::NotFound, "there is no such job"))?;
    Ok(reply::json(StatusCode::OK, &ask(&app, &caller, Query::Job(id)).await?))
}
