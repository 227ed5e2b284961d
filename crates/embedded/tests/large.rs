//! More at once than the store takes: it is taken in parts, and nobody pays for somebody else.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::sync::Arc;

use tally_core::command::{Batch, Relate};
use tally_core::{Call, Catalog, Command, Name, ObjectId, SubjectId};
use tally_embedded::{Embedded, Options};
use tally_engine::{Failure, Runner, RunnerOptions, SystemClock};

const BATCH_BYTES_MAX: usize = 256 << 10;

fn like(object: &str, subject: &str, meta_bytes: usize) -> Command {
    let meta = serde_json::json!({"text": "x".repeat(meta_bytes)});
    Command::from(Relate {
        relation: Name::new("like").unwrap(),
        object: ObjectId::new(object).unwrap(),
        subject: SubjectId::new(subject).unwrap(),
        kind: None,
        meta: Some(Arc::new(meta.as_object().unwrap().clone())),
    })
}

fn many(n: usize, likes: usize) -> Command {
    let commands = (0..likes).map(|m| like(&format!("post:{n}"), &format!("s{m}"), 1_000)).collect();
    Command::from(Batch { atomic: true, commands })
}

#[tokio::test]
async fn what_is_too_large_together_is_taken_in_parts() {
    let place = tempfile::tempdir().unwrap();
    let options = Options { batch_bytes_max: BATCH_BYTES_MAX, ..Options::default() };
    let engine = Arc::new(Embedded::open(place.path(), options).unwrap());
    let catalog = Arc::new(Catalog::default());
    let started = Runner::start(engine.clone(), catalog, SystemClock, RunnerOptions::default(), Arc::new(|_| {})).await;
    let (runner, done) = started.unwrap();
    // All of them wait before the runner sees the first, so they are one batch of several times the limit. One is
    // too large by itself.
    let calls = (0..20).map(|n| many(n, 50)).chain([many(99, 400), like("post:small", "alice", 1)]);
    let calls: Vec<_> = calls
        .map(|command| {
            let runner = runner.clone();
            tokio::spawn(async move { runner.apply(Call::system(command)).await })
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        let outcome = call.await.unwrap();
        if n == 20 {
            assert!(matches!(&outcome, Err(Failure::Store(error)) if error.is_too_large()), "{outcome:?}");
        } else {
            outcome.unwrap().reply.unwrap();
        }
    }
    drop(runner);
    done.await.unwrap();
}
