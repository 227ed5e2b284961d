//! A subject as a whole, and the jobs that such calls begin.

use tally::core::command::{Forget, Restore, Suspend};
use tally::core::query::JobQuery;
use tally::core::reply::JobReply;
use tally::core::rows::JobId;
use tally::core::{Code, Operation, SubjectId};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::tagged;
use crate::app::App;
use crate::auth::policy::Denied;
use crate::http::problem::Problem;
use crate::http::request::{Caller, Outcome, Segments};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Subjects", "A subject as a whole")
        .routes(routes!(forget))
        .routes(routes!(suspend))
        .routes(routes!(restore))
        .routes(routes!(read_job))
}

async fn begin<O: Operation>(caller: &Caller, subject: &str, command: impl FnOnce(SubjectId) -> O) -> Outcome {
    let subject = caller.subject(subject)?;
    caller.begin(command(subject)).await
}

/// Forget a subject everywhere
///
/// Removes everything that it has done until now, with every count right. What it does from now on is a new life, and
/// stays. Asked for again before it is done, it is the same job, which then also takes what has come since.
#[utoipa::path(delete, path = "/v1/subjects/{subject}", tag = "Subjects",
    params(("subject" = String, Path, description = "Whom; `me` for a user's own token")),
    responses((status = 202, description = "The job that does it", body = JobReply)))]
pub async fn forget(caller: Caller, Segments(subject): Segments<String>) -> Outcome {
    begin(&caller, &subject, |subject| Forget { subject }).await
}

/// Suspend a subject
///
/// Hides its edges from lists and counts, and refuses new ones, until it is restored. Forgetting does not lift it. Asked
/// for again, it is the same job.
#[utoipa::path(post, path = "/v1/subjects/{subject}/suspend", tag = "Subjects",
    params(("subject" = String, Path, description = "Whom")),
    responses((status = 202, description = "The job that does it", body = JobReply)))]
pub async fn suspend(caller: Caller, Segments(subject): Segments<String>) -> Outcome {
    begin(&caller, &subject, |subject| Suspend { subject }).await
}

/// Restore a suspended subject
///
/// Brings its edges back with their times. Asked for again, it is the same job.
#[utoipa::path(post, path = "/v1/subjects/{subject}/restore", tag = "Subjects",
    params(("subject" = String, Path, description = "Whom")),
    responses((status = 202, description = "The job that does it", body = JobReply)))]
pub async fn restore(caller: Caller, Segments(subject): Segments<String>) -> Outcome {
    begin(&caller, &subject, |subject| Restore { subject }).await
}

/// How far is a job?
///
/// A user may ask for those that are about itself. A job that has ended is kept for `jobs.keep`, a week by default.
#[utoipa::path(get, path = "/v1/jobs/{job}", tag = "Running",
    params(("job" = String, Path, description = "`job` of the answer that began it")),
    responses((status = 200, description = "The job", body = JobReply)))]
pub async fn read_job(caller: Caller, Segments(job): Segments<String>) -> Outcome {
    // A job is named after what it does to whom, so nobody has to look at it: a user is told the same of every job that is not
    // its own, whether or not there is one.
    let job = JobId::parse(&job).ok_or_else(|| match caller.own_subject() {
        Some(_) => Problem::from(Denied::User),
        None => Problem::new(Code::NotFound, "there is no such job"),
    })?;
    caller.answer(JobQuery { job, viewer: caller.own_subject().cloned() }).await
}
