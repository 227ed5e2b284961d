//! What waits is decided together; what is decided waits for the disk without holding up the next.

use std::sync::{Arc, Mutex};

use tally_core::command::{Batch, Call, Command, Cost, Unrelate};
use tally_engine::clock::ManualClock;
use tally_engine::memory::Memory;
use tally_engine::{Mark, RunnerOptions};

use crate::gated::Gated;
use crate::support::{Bench, code, edge, elsewhere, like, name, object, relate, subject, unlike, until};

#[tokio::test]
async fn an_idle_runner_answers_at_the_cost_of_one_commit() {
    let (engine, bench) = Bench::gated().await;
    let reply = bench.edge(like("alice")).await;
    assert!(reply.changed && reply.count == 1);
    assert_eq!((engine.loads.arrived(), engine.commits.arrived(), engine.settles.arrived()), (1, 1, 1));
}

#[tokio::test]
async fn what_waits_is_decided_in_one_commit() {
    let (engine, bench) = Bench::gated().await;
    let first = bench.held_at(&engine.commits, like("first")).await;
    let waiting = bench.queue((0..50).map(|n| like(&format!("s{n}")))).await;
    engine.commits.open();
    assert_eq!(edge(first.await.unwrap()).count, 1);
    for (n, call) in (2..).zip(waiting) {
        assert_eq!(edge(call.await.unwrap()).count, n, "each sees those before it");
    }
    assert_eq!(engine.commits.arrived(), 2);
    let commands: Vec<usize> = bench.told().iter().map(|told| told.commands).collect();
    assert_eq!(commands, [1, 50]);
    assert_eq!(engine.loads.arrived(), 2, "one load brings what all of them need");
}

#[tokio::test]
async fn the_next_batch_is_decided_while_the_first_settles() {
    let (engine, bench) = Bench::gated().await;
    let first = bench.held_at(&engine.settles, like("alice")).await;
    // Decided on what the first has done, though the first is not durable and not answered.
    let second = bench.send(unlike("alice"));
    engine.commits.has_seen(2).await;
    let third = bench.send(like("bob"));
    engine.commits.has_seen(3).await;
    assert!(!first.is_finished() && !second.is_finished() && !third.is_finished());

    engine.settles.let_one_through();
    assert!(edge(first.await.unwrap()).changed);
    engine.settles.has_seen(2).await;
    assert!(!second.is_finished(), "an answer waits for its own batch to be durable");
    engine.settles.let_one_through();
    let removed = edge(second.await.unwrap());
    assert!(removed.changed && !removed.active && removed.count == 0);
    engine.settles.open();
    assert_eq!(edge(third.await.unwrap()).count, 1);
    assert_eq!(*engine.settled.lock().unwrap(), [Mark(1), Mark(2), Mark(3)]);
}

/// A repeated like writes nothing, and still says that the like is there: it must not say so before
/// the like is durable.
#[tokio::test]
async fn an_answer_without_a_write_waits_for_what_it_was_decided_on() {
    let (engine, bench) = Bench::gated().await;
    let first = bench.held_at(&engine.settles, like("alice")).await;
    let again = bench.send(like("alice"));
    engine.loads.has_seen(2).await;
    engine.settles.let_one_through();
    assert!(edge(first.await.unwrap()).changed);
    engine.settles.has_seen(2).await;
    assert!(!again.is_finished());
    engine.settles.open();
    assert!(!edge(again.await.unwrap()).changed);
    assert_eq!(engine.commits.arrived(), 1, "nothing to write, nothing committed");
    assert_eq!(*engine.settled.lock().unwrap(), [Mark(1), Mark(1)], "it waited for the like's own mark");
}

#[tokio::test]
async fn answers_come_in_order() {
    let engine = Arc::new(Gated::default());
    let options = RunnerOptions { batch_commands_max: 7, ..RunnerOptions::default() };
    let bench = Bench::with(&engine, ManualClock::at(1_000), options).await;
    engine.commits.close();
    let answered: Arc<Mutex<Vec<usize>>> = Arc::default();
    let mut calls = Vec::new();
    for n in 0..40 {
        let (runner, answered) = (bench.runner.clone(), answered.clone());
        calls.push(tokio::spawn(async move {
            let decided = runner.apply(Call::system(like(&format!("s{n}")))).await;
            answered.lock().unwrap().push(n);
            decided
        }));
    }
    engine.commits.has_seen(1).await;
    engine.commits.open();
    for (n, call) in (1..).zip(calls) {
        assert_eq!(edge(call.await.unwrap()).count, n, "decided in the order of arrival");
    }
    assert_eq!(*answered.lock().unwrap(), (0..40).collect::<Vec<_>>());
    assert!(bench.told().iter().all(|told| told.commands <= 7));
}

/// What does not fit is not left behind by what comes later.
#[tokio::test]
async fn a_batch_that_is_too_large_for_the_rest_goes_next_and_alone() {
    let engine = Arc::new(Gated::default());
    let options = RunnerOptions { batch_commands_max: 8, ..RunnerOptions::default() };
    let bench = Bench::with(&engine, ManualClock::at(1_000), options).await;
    let first = bench.held_at(&engine.commits, like("first")).await;
    let many = |prefix: &str, many: usize| {
        Command::from(Batch { atomic: true, commands: (0..many).map(|n| like(&format!("{prefix}{n}"))).collect() })
    };
    let calls = bench.queue([like("a"), many("b", 7), like("c"), many("d", 20), like("e")]).await;
    engine.commits.open();
    first.await.unwrap().unwrap();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let commands: Vec<usize> = bench.told().iter().map(|told| told.commands).collect();
    assert_eq!(commands, [1, 8, 1, 20, 1]);
    assert_eq!(bench.runner.waiting(), 0);
}

#[tokio::test]
async fn a_refusal_does_not_harm_the_batch() {
    let (engine, bench) = Bench::gated().await;
    let first = bench.held_at(&engine.commits, like("first")).await;
    let mut calls = bench
        .queue([
            like("alice"),
            relate("nothing", "post:1", "bob"),
            relate("pin", "post:1", "carol"),
            relate("pin", "post:2", "carol"),
            like("dan"),
        ])
        .await
        .into_iter();
    engine.commits.open();
    first.await.unwrap().unwrap();
    let mut next = async || calls.next().unwrap().await.unwrap();
    assert_eq!(edge(next().await).count, 2);
    assert_eq!(code(next().await), "relation_not_found");
    assert!(edge(next().await).changed);
    assert_eq!(code(next().await), "limit_exceeded", "decided on what the one before it did");
    assert_eq!(edge(next().await).count, 3);
    assert_eq!(engine.commits.arrived(), 2);
}

/// A hundred likes in a hundred milliseconds.
#[tokio::test]
async fn a_hundred_likes_of_one_subject_are_one_write() {
    let (engine, bench) = Bench::gated().await;
    engine.loads.close();
    let calls: Vec<_> = (0..100).map(|_| bench.send(like("bot"))).collect();
    until(|| engine.loads.arrived() == 1).await;
    engine.loads.open();
    let mut costs = Vec::new();
    let mut changed = 0;
    for call in calls {
        let decided = call.await.unwrap().unwrap();
        costs.push(decided.cost);
        let reply = edge(Ok(decided));
        changed += usize::from(reply.changed);
        assert!(reply.active && reply.count == 1);
    }
    assert_eq!(changed, 1);
    assert_eq!(engine.commits.arrived(), 1);
    assert_eq!(costs[0], Cost { reads: 2, writes: 2 });
    assert!(costs[1..].iter().all(|cost| *cost == Cost { reads: 1, writes: 0 }));
}

/// A large batch does not load the totals that it only adds to; its answers carry them all the same.
#[tokio::test]
async fn a_large_batch_answers_as_its_commands_would_one_by_one() {
    let commands: Vec<Command> = (0..600_u64)
        .map(|n| {
            let dice = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let (to, who) = (format!("post:{}", dice % 7), format!("s{}", dice / 7 % 11));
            match dice / 77 % 4 {
                0 => Command::from(Unrelate { relation: name("like"), object: object(&to), subject: subject(&who) }),
                _ => relate("like", &to, &who),
            }
        })
        .collect();
    // Another server's likes, between the load and the commit of the large batch.
    let others = ["post:0", "post:3"].map(|to| relate("like", to, "elsewhere"));

    let engine = Arc::new(Memory::default());
    others.iter().for_each(|other| elsewhere(&engine, other.clone()));
    let bench = Bench::start(&engine).await;
    let mut expected = Vec::new();
    for command in commands.clone() {
        let reply = bench.edge(command).await;
        expected.push((reply.active, reply.changed, reply.count));
    }

    let (engine, bench) = Bench::gated().await;
    let first = bench.held_at(&engine.commits, relate("like", "post:99", "first")).await;
    let calls = bench.queue(commands).await;
    engine.loads.close();
    engine.commits.open();
    first.await.unwrap().unwrap();
    *engine.meddler.lock().unwrap() =
        Some(Box::new(move |memory| others.iter().for_each(|other| elsewhere(memory, other.clone()))));
    engine.loads.open();
    for (n, (call, expected)) in calls.into_iter().zip(expected).enumerate() {
        let reply = edge(call.await.unwrap());
        assert_eq!((reply.active, reply.changed, reply.count), expected, "command {n}");
    }
    assert_eq!(bench.told().iter().map(|told| told.commands).collect::<Vec<_>>(), [1, 600]);
}
