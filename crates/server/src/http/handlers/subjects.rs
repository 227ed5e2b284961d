//! A subject as a whole, and the jobs that such calls begin.

use axum::extract::State;
use axum::http::StatusCode;
use tally::core::command::{Call as Asked, Command, JobReply};
use tally::core::rows::JobId;
use tally::core::{Query, SubjectId};

use super::{Outcome, ask};
use crate::app::App;
use crate::auth::policy::Call;
use crate::http::problem::Problem;
use crate::http::reply;
use crate::http::request::{Caller, Segments};

async fn begin(
    app: &App,
    caller: &Caller,
    call: Call,
    subject: &str,
    command: impl FnOnce(SubjectId) -> Command,
) -> Outcome {
    caller.signed_in()?;
    let subject = caller.subject(subject)?;
    caller.may(call, Some(&subject), None)?;
    let asked = Asked { auth: caller.facts(), command: command(subject), once: None };
    reply::decided(StatusCode::ACCEPTED, app.tally.apply(asked).await?)
}

/// Forget a subject everywhere
///
/// Removes every edge that it has now, with every count right. What it does afterwards is a new life.
#[utoipa::path(
    delete, path = "/v1/subjects/{subject}", tag = "Subjects",
    params(("subject" = String, Path, description = "Whom; `me` for a user's own token")),
    responses((status = 202, description = "The job that does it", body = JobReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn forget(State(app): State<App>, caller: Caller, Segments(subject): Segments<String>) -> Outcome {
    begin(&app, &caller, Call::ForgetSubject, &subject, |subject| Command::Forget { subject }).await
}

/// Suspend a subject
///
/// Hides its edges from lists and counts, and refuses new ones, until it is restored.
#[utoipa::path(
    post, path = "/v1/subjects/{subject}/suspend", tag = "Subjects",
    params(("subject" = String, Path, description = "Whom")),
    responses((status = 202, description = "The job that does it", body = JobReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn suspend(State(app): State<App>, caller: Caller, Segments(subject): Segments<String>) -> Outcome {
    begin(&app, &caller, Call::SuspendSubject, &subject, |subject| Command::Suspend { subject }).await
}

/// Restore a suspended subject
///
/// Brings its edges back with their times.
#[utoipa::path(
    post, path = "/v1/subjects/{subject}/restore", tag = "Subjects",
    params(("subject" = String, Path, description = "Whom")),
    responses((status = 202, description = "The job that does it", body = JobReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn restore(State(app): State<App>, caller: Caller, Segments(subject): Segments<String>) -> Outcome {
    begin(&app, &caller, Call::RestoreSubject, &subject, |subject| Command::Restore { subject }).await
}

/// How far is a job?
#[utoipa::path(
    get, path = "/v1/jobs/{job}", tag = "Running",
    params(("job" = String, Path, description = "`job` of the answer that began it")),
    responses((status = 200, description = "The job", body = JobReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_job(State(app): State<App>, caller: Caller, Segments(job): Segments<String>) -> Outcome {
    caller.signed_in()?;
    // Whoever holds a job's random id began it or was told of it, so a user asks about itself.
    caller.may(Call::ReadJob, caller.own_subject(), None)?;
    let id = JobId::parse(&job).ok_or_else(|| Problem::new("not_found", "there is no such job"))?;
    Ok(reply::json(StatusCode::OK, &ask(&app, &caller, Query::Job(id)).await?))
}
