//! A database whose clock is set back, or that gives way to one whose clock is behind: what ends what is older ends all of it.

use tally_core::command::{Command, DeleteObject, Forget, Sweep};
use tally_core::reply::Reply;
use tally_core::rows::{EdgeKey, JobId, JobKind};
use tally_core::time::Stamp;
use tally_core::{ObjectId, SubjectId};
use tally_testing::Postgres;
use tally_testing::postgres::Options;

use crate::support::{Store, name, until, with_schema};

const LIKES: usize = 6;

fn object(id: &str) -> ObjectId {
    ObjectId::new(id).unwrap()
}

/// One step over these edges; gives how many the job has changed.
async fn sweep(store: &Store, job: JobId, edges: Vec<EdgeKey>) -> u64 {
    match store.apply(Command::from(Sweep { job, before: Stamp(u64::MAX), edges })).await.unwrap() {
        Reply::Job(job) => job.edges,
        other => panic!("{other:?} is no job"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_liked_before_the_clock_went_back_is_forgotten() {
    for ahead_s in [3_600, 2 * 86_400] {
        let mut postgres = Postgres::start(Options { clock_ahead_s: ahead_s, ..Options::default() }).unwrap();
        let url = with_schema(&postgres.url(), "&timeout_ms=500");
        let (ahead, other) = (Store::open(&url).await, Store::open(&url).await);
        let (mut own, mut of_one) = (Vec::new(), Vec::new());
        for number in 0..LIKES {
            let (post, fan) = (format!("post:{number}"), format!("fan{number}"));
            ahead.like(&post, "alice").await.unwrap();
            ahead.like("post:doomed", &fan).await.unwrap();
            let key = |object, subject: &str| EdgeKey {
                object,
                relation: name("like"),
                subject: SubjectId::new(subject).unwrap(),
            };
            own.push(key(object(&post), "alice"));
            of_one.push(key(object("post:doomed"), &fan));
        }
        postgres.stop().unwrap();
        postgres.set_clock(0);
        postgres.start_again().unwrap();
        for store in [&ahead, &other] {
            until("it is there again", async || store.count("post:1").await.ok()).await;
        }
        other.apply(Command::from(Forget { subject: SubjectId::new("alice").unwrap() })).await.unwrap();
        other.apply(Command::from(DeleteObject { object: object("post:doomed") })).await.unwrap();
        let (forgetting, clearing) = (JobId::of(JobKind::Forget, "alice"), JobId::of(JobKind::Clear, "post:doomed"));
        // What comes now is new, whoever takes it.
        for store in [&ahead, &other] {
            store.like("post:new", "alice").await.unwrap();
        }
        let new = EdgeKey { object: object("post:new"), ..own[0].clone() };
        assert_eq!(sweep(&other, forgetting, own).await, LIKES as u64, "ahead by {ahead_s} s");
        assert_eq!(sweep(&other, forgetting, vec![new]).await, LIKES as u64, "ahead by {ahead_s} s: what is new stays");
        assert_eq!(sweep(&other, clearing, of_one).await, LIKES as u64, "ahead by {ahead_s} s");
        assert_eq!(other.count("post:doomed").await.unwrap(), 0);
        assert_eq!(other.count("post:new").await.unwrap(), 1);
        ahead.assert_sound().await;
    }
}
