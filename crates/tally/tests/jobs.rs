//! Jobs come to their end, whatever else is open.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use tally::core::command::{Call, Command, Forget, Unrelate};
use tally::core::reply::Reply;
use tally::core::rows::{Change, Changes, Job, JobId, Key, Row, Work};
use tally::core::time::{Stamp, Timestamp};
use tally::core::view::{View, Wants};
use tally::core::{ObjectId, SubjectId};
use tally::engine::memory::Memory;
use tally::engine::{Engine, Seen};
use tally::{Options, Tally};

/// A look at jobs used to begin with the lowest ids again and again, so that those behind them waited for ever.
#[tokio::test]
async fn a_job_is_done_however_many_stay_open_before_it() {
    let engine = Arc::new(Memory::default());
    // Nobody carries these: they are verifications that nothing points to.
    let stuck = |id| {
        let work = Work::Verify { repair: false, round: 0, rows: 0, report: None, failure: None };
        let job = Job { work, before: Stamp(1), edges: 0, created_at: Timestamp(1), finished_at: None };
        (Key::Job(JobId(id)), Change { before: None, after: Some(Row::Job(job)) })
    };
    let changes =
        Changes { rows: (2..1_000).map(stuck).collect(), adds: Vec::new(), numbers: Vec::new(), stamp: Stamp(1) };
    let mark = engine.load(&Wants::default()).await.unwrap().mark;
    engine.commit(Seen { mark, view: &View::default() }, &changes).await.unwrap();

    let tally = Tally::on(engine, Options::default()).await.unwrap();
    tally.relate("like", "post:1", "alice").await.unwrap();
    let forget = Command::from(Forget { subject: SubjectId::new("alice").unwrap() });
    let Ok(Reply::Job(job)) = tally.apply(Call::system(forget)).await.unwrap().reply else { panic!("it is a job") };
    let id = JobId::parse(&job.job).unwrap();
    assert!(id > JobId(1_000), "it is behind all of them");
    let (wants, since) = (Wants::rows(vec![Key::Job(id)]), Instant::now());
    while let Some(Row::Job(Job { finished_at: None, .. })) = &tally.engine().load(&wants).await.unwrap().rows[0] {
        assert!(since.elapsed() < Duration::from_secs(60), "waited in vain");
        tokio::task::yield_now().await;
    }
    let like = Call::system(Command::from(Unrelate {
        relation: tally::core::Name::new("like").unwrap(),
        object: ObjectId::new("post:1").unwrap(),
        subject: SubjectId::new("alice").unwrap(),
    }));
    assert!(matches!(tally.apply(like).await.unwrap().reply, Ok(Reply::Relation(edge)) if !edge.changed));
    tally.close().await;
}
