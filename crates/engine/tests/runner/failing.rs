//! Stores that fail, rows that are not what they should be, rules that panic.

use std::sync::Arc;

use tally_core::Command;
use tally_core::command::Sweep;
use tally_core::rows::{Change, Changes, Job, JobId, Key, Object, Row, Work};
use tally_core::time::{Stamp, Timestamp};
use tally_core::view::View;
use tally_engine::faulty::{Fault, Faulty};
use tally_engine::memory::Memory;
use tally_engine::{Engine, Failure, Mark, Seen};

use crate::gated::Gated;
use crate::support::{Bench, code, count, edge, edge_key, has, like, subject};

/// Puts rows into the store behind the rules' back.
async fn plant(memory: &Memory, rows: Vec<(Key, Row)>) {
    let rows = rows.into_iter().map(|(key, row)| (key, Change { before: None, after: Some(row) })).collect();
    let changes = Changes { rows, stamp: Stamp(1), ..Changes::default() };
    memory.commit(Seen { mark: Mark(0), view: &View::default() }, &changes).await.expect("nobody is in its way");
}

#[tokio::test]
async fn a_failure_at_each_step_is_answered_and_the_next_call_works() {
    for fault in [Fault::Before, Fault::After] {
        for (step, takes_effect) in [(0, false), (1, fault == Fault::After), (2, true)] {
            let memory = Arc::new(Memory::default());
            let bench = Bench::start(&Arc::new(Faulty::new(memory.clone(), step, fault))).await;
            let failure = bench.apply(like("alice")).await.unwrap_err();
            assert!(matches!(&failure, Failure::Store(error) if error.is_transient()), "{failure}");
            assert_eq!(has(&memory, edge_key("like", "post:1", "alice")), takes_effect, "{fault:?} at {step}");
            assert_eq!(bench.told(), [], "nothing is told of a batch that failed");
            let again = bench.edge(like("alice")).await;
            assert_eq!((again.active, again.changed, again.count), (true, !takes_effect, 1), "{fault:?} at {step}");
        }
    }
}

#[tokio::test]
async fn a_failure_is_answered_to_everyone_in_the_batch_and_to_nobody_else() {
    let gated = Arc::new(Gated::default());
    // Load, commit and settlement of the first, then the load of the batch behind it.
    let bench = Bench::start(&Arc::new(Faulty::new(gated.clone(), 4, Fault::Before))).await;
    gated.commits.close();
    let first = bench.send(like("first"));
    gated.commits.has_seen(1).await;
    let calls = bench.queue((0..5).map(|n| like(&format!("s{n}")))).await;
    gated.settles.close();
    gated.commits.open();
    gated.settles.has_seen(1).await;
    let failed = calls.into_iter();
    for call in failed {
        assert!(matches!(call.await.unwrap(), Err(Failure::Store(_))));
    }
    gated.settles.open();
    assert!(edge(first.await.unwrap()).changed);
    assert_eq!(count(&gated.memory, "like", "post:1"), 1);
    assert_eq!(bench.edge(like("s0")).await.count, 2);
}

#[tokio::test]
async fn a_row_that_is_not_what_its_key_says_harms_only_its_own_command() {
    let gated = Arc::new(Gated::default());
    let stranger =
        Object { status: None, attributes: Default::default(), created_at: Timestamp(1), updated_at: Timestamp(1) };
    plant(&gated.memory, vec![(Key::Edge(edge_key("like", "post:1", "odd")), Row::Object(stranger))]).await;
    let bench = Bench::start(&gated).await;
    gated.commits.close();
    let first = bench.send(like("first"));
    gated.commits.has_seen(1).await;
    let mut calls = bench.queue([like("alice"), like("odd"), like("bob")]).await.into_iter();
    gated.commits.open();
    first.await.unwrap().unwrap();
    let mut next = async || calls.next().unwrap().await.unwrap();
    assert_eq!(edge(next().await).count, 2);
    assert_eq!(code(next().await), "internal");
    assert_eq!(edge(next().await).count, 3);
    assert_eq!(gated.commits.arrived(), 2, "one commit for those that are whole");
    assert_eq!(bench.told()[1].broken, 1, "and a defect that is counted");
}

/// A job that has changed as many edges as a number can hold: one more makes its rule panic.
/// Arithmetic is only checked in debug builds, which is where tests run.
#[cfg(debug_assertions)]
#[tokio::test]
async fn a_rule_that_panics_harms_only_its_own_command() {
    let gated = Arc::new(Gated::default());
    let job = Job {
        work: Work::Forget { subject: subject("alice") },
        before: Stamp(u64::MAX),
        edges: u64::MAX,
        created_at: Timestamp(1),
        finished_at: None,
    };
    plant(&gated.memory, vec![(Key::Job(JobId(1)), Row::Job(job.clone()))]).await;
    let bench = Bench::start(&gated).await;
    bench.edge(like("alice")).await;
    let before = gated.memory.dump();

    gated.commits.close();
    let first = bench.send(like("first"));
    gated.commits.has_seen(2).await;
    let sweep = Command::from(Sweep {
        job: JobId(1),
        before: Stamp(u64::MAX),
        edges: vec![edge_key("like", "post:1", "alice")],
    });
    let mut calls = bench.queue([like("bob"), sweep, like("carol")]).await.into_iter();
    gated.commits.open();
    assert_eq!(edge(first.await.unwrap()).count, 2);
    let mut next = async || calls.next().unwrap().await.unwrap();
    assert_eq!(edge(next().await).count, 3);
    assert_eq!(code(next().await), "internal");
    assert_eq!(edge(next().await).count, 4, "what the rule had done before it panicked was taken back");
    assert!(has(&gated.memory, edge_key("like", "post:1", "alice")));
    assert_eq!(gated.memory.dump().0[&Key::Job(JobId(1))], before.0[&Key::Job(JobId(1))]);
    assert_eq!(bench.told().last().unwrap().broken, 1);
}
