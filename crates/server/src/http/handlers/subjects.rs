//! A subject as a whole, and the jobs that such calls begin.

use axum::extract::State;
use axum::http::StatusCode;
use tally::core::command::{Forget, Restore, Suspend};
use tally::core::query::JobQuery;
use tally::core::reply::JobReply;
use tally::core::rows::JobId;
use tally::core::{Code, Operation, SubjectId};

use super::{Outcome, answer};
use crate::app::App;
use crate::auth::policy::Denied;
use crate::http::problem::Problem;
use crate::http::reply;
use crate::http::request::{Caller, Segments};

async fn begin<O: Operation>(
    app: &App,
    caller: &Caller,
    subject: &str,
    command: impl FnOnce(SubjectId) -> O,
) -> Outcome {
    caller.signed_in()?;
    let subject = caller.subject(subject)?;
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
    begin(&app, &caller, &subject, |subject| Forget { subject }).await
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
    begin(&app, &caller, &subject, |subject| Suspend { subject }).await
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
    begin(&app, &caller, &subject, |subject| Restore { subject }).await
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
    // A job is named after what it does to whom, so nobody has to look at it: a user is told the same of every job that is not
    // its own, whether or not there is one.
    let job = JobId::parse(&job).ok_or_else(|| match caller.own_subject() {
        Some(_) => Problem::from(Denied::User),
        None => Problem::new(Code::NotFound, "there is no such job"),
    })?;
    answer(&app, &caller, JobQuery { job, viewer: caller.own_subject().cloned() }).await
}
