//! A verification, followed to its end.

use std::time::Duration;

use tally::VerifyReport;
use tally::core::command::JobReply;

use crate::failure::Failure;

/// How often to ask: soon at first, since most stores are small.
const ASK_AFTER: Duration = Duration::from_millis(20);
const ASK_EVERY_MAX: Duration = Duration::from_millis(500);
/// Questions in a row that may fail: a server that starts again goes on with the job.
const UNANSWERED_MAX: u32 = 20;

/// Waits for the report of a verification that has begun.
pub(super) async fn verification(
    mut job: JobReply,
    ask: impl AsyncFn(&str) -> Result<JobReply, Failure>,
    mut progress: impl FnMut(u64),
) -> Result<VerifyReport, Failure> {
    let (mut wait, mut unanswered) = (ASK_AFTER, 0);
    loop {
        progress(job.rows.unwrap_or_default());
        if let Some(report) = job.report {
            return Ok(*report);
        }
        if let Some(error) = job.error {
            return Err(Failure::new(format!("the verification failed: {error}")));
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

fn still_patient(unanswered: u32, failure: Failure) -> Result<u32, Failure> {
    if unanswered >= UNANSWERED_MAX { Err(failure) } else { Ok(unanswered + 1) }
}
