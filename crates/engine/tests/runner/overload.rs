//! More than can be taken: a clear no at once, and recovery.

use std::sync::Arc;

use tally_core::Command;
use tally_core::command::Batch;
use tally_engine::clock::ManualClock;
use tally_engine::{Failure, RunnerOptions};

use crate::gated::Gated;
use crate::support::{Bench, count, edge, like, until};

fn many(prefix: &str, many: usize) -> Command {
    Command::from(Batch { atomic: true, commands: (0..many).map(|n| like(&format!("{prefix}{n}"))).collect() })
}

async fn full(engine: &Arc<Gated>, queue_commands_max: usize) -> Bench {
    let options = RunnerOptions { queue_commands_max, ..RunnerOptions::default() };
    Bench::with(engine, ManualClock::at(1_000), options).await
}

#[tokio::test]
async fn past_the_limit_of_the_queue_a_call_is_turned_away_at_once() {
    let engine = Arc::new(Gated::default());
    let bench = full(&engine, 10).await;
    let first = bench.held_at(&engine.commits, like("first")).await;
    let waiting = bench.queue((0..10).map(|n| like(&format!("s{n}")))).await;
    for n in 0..5 {
        // Answered while the store is stuck: nothing of it was done, or ever will be.
        assert_eq!(bench.apply(like(&format!("late{n}"))).await, Err(Failure::Overloaded));
    }
    assert_eq!(bench.runner.waiting(), 10);
    engine.commits.open();
    first.await.unwrap().unwrap();
    for (n, call) in (2..).zip(waiting) {
        assert_eq!(edge(call.await.unwrap()).count, n, "what was accepted is answered, in order");
    }
    assert_eq!(count(&engine.memory, "like", "post:1"), 11);
    assert_eq!(bench.edge(like("late0")).await.count, 12, "and the next is taken");
    assert_eq!(bench.runner.waiting(), 0);
}

#[tokio::test]
async fn commands_inside_batches_are_counted_singly() {
    let engine = Arc::new(Gated::default());
    let bench = full(&engine, 10).await;
    let first = bench.held_at(&engine.commits, like("first")).await;
    let calls = bench.queue([many("a", 6)]).await;
    assert_eq!(bench.apply(many("b", 5)).await, Err(Failure::Overloaded));
    let rest = bench.queue([many("c", 4)]).await;
    assert_eq!(bench.apply(like("late")).await, Err(Failure::Overloaded));
    engine.commits.open();
    for call in [first].into_iter().chain(calls).chain(rest) {
        call.await.unwrap().unwrap().reply.unwrap();
    }
    assert_eq!(count(&engine.memory, "like", "post:1"), 11);
}

#[tokio::test]
async fn one_call_always_fits_an_empty_queue() {
    let engine = Arc::new(Gated::default());
    let bench = full(&engine, 10).await;
    bench.apply(many("a", 20)).await.unwrap().reply.unwrap();
    assert_eq!(count(&engine.memory, "like", "post:1"), 20);
    until(|| bench.runner.waiting() == 0).await;
}

/// Batches on their way to the disk are bounded too: past that the runner takes no more from the
/// queue, and the queue fills.
#[tokio::test]
async fn a_disk_that_does_not_keep_up_fills_the_queue() {
    let engine = Arc::new(Gated::default());
    let options = RunnerOptions {
        queue_commands_max: 5,
        batch_commands_max: 1,
        batches_in_flight_max: 2,
        ..RunnerOptions::default()
    };
    let bench = Bench::with(&engine, ManualClock::at(1_000), options).await;
    engine.settles.close();
    let mut accepted = Vec::new();
    for n in 0..100 {
        let call = bench.send(like(&format!("s{n}")));
        // Either it is turned away, or it goes as far as it can.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        if call.is_finished() {
            assert_eq!(call.await.unwrap(), Err(Failure::Overloaded));
        } else {
            accepted.push(call);
        }
    }
    assert!((5..=12).contains(&accepted.len()), "{} were accepted", accepted.len());
    engine.settles.open();
    for (n, call) in (1..).zip(accepted) {
        assert_eq!(edge(call.await.unwrap()).count, n);
    }
    assert!(bench.edge(like("later")).await.changed);
}
