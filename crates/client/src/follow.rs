//! A verification, followed to its end.

use std::time::Duration;

use tally_core::reply::JobReply;
use tally_core::rows::VerifyReport;

/// How often to ask: soon at first, since most stores are small.
const ASK_AFTER: Duration = Duration::from_millis(20);
const ASK_EVERY_MAX: Duration = Duration::from_millis(500);
/// Questions in a row that may fail: a server that starts again goes on with the job.
const UNANSWERED_MAX: u32 = 20;

/// A verification that did not come to its end, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the verification failed: {0}")]
pub struct FailedJob(pub String);

/// Waits for the report of a verification that has begun, whoever it is that can be asked about the job. `progress` gets the
/// rows read so far.
pub async fn verification<E: From<FailedJob>>(
    mut job: JobReply,
    ask: impl AsyncFn(&str) -> Result<JobReply, E>,
    mut progress: impl FnMut(u64),
) -> Result<VerifyReport, E> {
    let (mut wait, mut unanswered) = (ASK_AFTER, 0);
    loop {
        progress(job.rows.unwrap_or_default());
        if let Some(report) = job.report {
            return Ok(*report);
        }
        if let Some(error) = job.error {
            return Err(FailedJob(error.to_string()).into());
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(ASK_EVERY_MAX);
        job = loop {
            match ask(&job.job).await {
                Ok(job) => break job,
                Err(failure) => unanswered = still_patient(unanswered, failure)?,
            }
            tokio::time::sleep(ASK_EVERY_MAX).await;
        };
        unanswered = 0;
    }
}

fn still_patient<E>(unanswered: u32, failure: E) -> Result<u32, E> {
    if unanswered >= UNANSWERED_MAX { Err(failure) } else { Ok(unanswered + 1) }
}
