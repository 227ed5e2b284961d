//! Starting, stopping, callers that leave, clocks that go back.

use std::sync::Arc;

use tally_core::command::{Batch, Call, Take};
use tally_core::rows::{Key, Row};
use tally_core::time::Timestamp;
use tally_core::{Command, KeyId};
use tally_engine::clock::ManualClock;
use tally_engine::memory::Memory;
use tally_engine::{Failure, Runner, RunnerOptions, Settled};

use crate::support::{Bench, catalog, count, edge, edge_key, has, like, name, relate, until};

#[tokio::test]
async fn a_caller_that_has_gone_is_skipped() {
    let (engine, bench) = Bench::gated().await;
    let first = bench.held_at(&engine.commits, like("first")).await;
    let mut calls = bench.queue(["stays", "goes", "stays too"].map(like)).await;
    let goes = calls.remove(1);
    goes.abort();
    assert!(goes.await.unwrap_err().is_cancelled());
    engine.commits.open();
    first.await.unwrap().unwrap();
    for call in calls {
        assert!(edge(call.await.unwrap()).changed);
    }
    assert!(!has(&engine.memory, edge_key("like", "post:1", "goes")));
    assert_eq!(count(&engine.memory, "like", "post:1"), 3);
    assert_eq!(bench.runner.waiting(), 0, "its place in the queue is free again");
}

/// Gone after the decision: what was committed stands.
#[tokio::test]
async fn a_caller_that_goes_too_late_changes_nothing() {
    let (engine, bench) = Bench::gated().await;
    let call = bench.held_at(&engine.settles, like("alice")).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    engine.settles.open();
    assert!(!bench.edge(like("alice")).await.changed);
}

#[tokio::test]
async fn stopping_answers_what_was_accepted() {
    let (engine, bench) = Bench::gated().await;
    let first = bench.held_at(&engine.commits, like("first")).await;
    let calls = bench.queue((0..20).map(|n| like(&format!("s{n}")))).await;
    let Bench { runner, done, .. } = bench;
    drop(runner);
    engine.commits.open();
    for call in [first].into_iter().chain(calls) {
        assert!(edge(call.await.unwrap()).changed);
    }
    done.await.unwrap();
    assert_eq!(Arc::strong_count(&engine), 1, "nothing holds the engine any more");
    assert_eq!(count(&engine.memory, "like", "post:1"), 21);
}

/// If what is told panics, nobody is told that nothing was done when something was.
#[tokio::test]
async fn an_observer_that_panics_leaves_nobody_misled() {
    let memory = Arc::new(Memory::default());
    let observer = Arc::new(|_: &tally_engine::Settled| panic!("an observer that panics"));
    let (runner, done) =
        Runner::start(memory.clone(), catalog(), ManualClock::at(1), RunnerOptions::default(), observer).await.unwrap();
    let call = |who: &str| tally_core::Call::system(like(who));
    let first = runner.apply(call("alice")).await;
    assert!(matches!(first, Err(Failure::Store(_))), "it was committed, and may not be called undone: {first:?}");
    for n in 0..5 {
        let who = format!("s{n}");
        match runner.apply(call(&who)).await {
            Err(Failure::Stopping) => assert!(!has(&memory, edge_key("like", "post:1", &who)), "stopping means undone"),
            Err(Failure::Store(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(runner.apply(call("late")).await, Err(Failure::Stopping), "and in the end it stops");
    drop(runner);
    done.await.unwrap();
}

#[tokio::test]
async fn a_clock_that_goes_back_keeps_the_order() {
    let memory = Arc::new(Memory::default());
    let clock = ManualClock::at(2_000);
    let bench = Bench::with(&memory, clock.clone(), RunnerOptions::default()).await;
    let mut times = Vec::new();
    for (who, now) in [("a", 2_000), ("b", 1_000), ("c", 1_500), ("d", 2_000), ("e", 2_001)] {
        clock.set(now);
        times.push(bench.edge(like(who)).await.created_at);
    }
    assert_eq!(times, [2_000, 2_000, 2_000, 2_000, 2_001].map(|ms| Some(Timestamp(ms))));
    assert_eq!(newest_first(&memory), ["e", "d", "c", "b", "a"]);
    let Bench { runner, done, .. } = bench;
    drop(runner);
    done.await.unwrap();
    // Also over a restart, with a clock that has lost a day.
    let bench = Bench::with(&memory, ManualClock::at(10), RunnerOptions::default()).await;
    assert_eq!(bench.edge(like("f")).await.created_at, Some(Timestamp(2_001)));
    assert_eq!(newest_first(&memory), ["f", "e", "d", "c", "b", "a"]);
}

/// A batch uses as many stamps as it has commands, so what comes behind it is newer than all of them.
#[tokio::test]
async fn what_comes_behind_a_batch_is_newer_than_all_of_it() {
    let memory = Arc::new(Memory::default());
    let bench = Bench::start(&memory).await;
    for (several, one) in [(["c", "a", "b"], "d"), (["x", "z", "y"], "w")] {
        let commands = several.map(like).to_vec();
        bench.apply(Command::from(Batch { atomic: true, commands })).await.unwrap().reply.unwrap();
        bench.edge(like(one)).await;
    }
    assert_eq!(newest_first(&memory), ["w", "y", "z", "x", "d", "b", "a", "c"]);
}

fn newest_first(memory: &Memory) -> Vec<String> {
    let mut edges: Vec<_> = memory
        .dump()
        .0
        .into_iter()
        .filter_map(|(key, row)| match (key, row) {
            (Key::Edge(key), Row::Edge(edge)) => Some((edge.created, key.subject.as_str().to_owned())),
            _ => None,
        })
        .collect();
    edges.sort_by_key(|(created, _)| std::cmp::Reverse(*created));
    edges.into_iter().map(|(_, who)| who).collect()
}

/// What is told comes before the answer, so that whoever reads an answer can rely on it.
#[tokio::test]
async fn a_batch_is_told_before_it_is_answered() {
    let (_engine, bench) = Bench::gated().await;
    for n in 1..=3 {
        bench.edge(like(&format!("s{n}"))).await;
        assert_eq!(bench.told().len(), n);
    }
    bench.edge(relate("like", "post:2", "s1")).await;
    let totals = bench.told().pop().unwrap().totals;
    assert!(totals.iter().any(|(_, value)| *value == 1) && totals.len() == 2, "{totals:?}");
    until(|| bench.runner.waiting() == 0).await;
}

/// A clock was a day ahead for a while. Order stays strict, and limits do not wait for the day.
#[tokio::test]
async fn a_stamp_from_the_future_freezes_no_limit() {
    const DAY_MS: u64 = 86_400_000;
    let (memory, clock) = (Arc::new(Memory::default()), ManualClock::at(1_000 + DAY_MS));
    let mut declared = (*catalog()).clone();
    let door = tally_core::catalog::LimitDef::parse("door", "1/s", None).unwrap();
    declared.declare_limit(name("door"), door);
    let declared = Arc::new(declared);
    let start = async || {
        let (options, observer) = (RunnerOptions::default(), Arc::new(|_: &Settled| {}));
        Runner::start(memory.clone(), declared.clone(), clock.clone(), options, observer).await.unwrap().0
    };
    let take = || Call::system(Command::from(Take { limit: name("door"), key: KeyId::new("alice").unwrap(), cost: 1 }));
    let ahead = start().await;
    ahead.apply(take()).await.unwrap().reply.unwrap();
    ahead.apply(Call::system(like("early"))).await.unwrap().reply.unwrap();
    drop(ahead);

    clock.set(1_000);
    let runner = start().await;
    runner.apply(Call::system(like("late"))).await.unwrap().reply.unwrap();
    let created = |who| match memory.dump().0.get(&Key::Edge(edge_key("like", "post:1", who))) {
        Some(Row::Edge(edge)) => edge.created,
        other => panic!("{other:?}"),
    };
    assert!(created("early") < created("late"), "what comes later stands later");
    runner.apply(take()).await.unwrap().reply.expect("what was used in the future is held against nobody");
    assert!(runner.apply(take()).await.unwrap().reply.is_err(), "it is used up");
    clock.set(3_000);
    runner.apply(take()).await.unwrap().reply.expect("time goes on");
}

#[tokio::test]
async fn a_lane_that_panicked_is_noticed() {
    let (memory, options) = (Arc::new(Memory::default()), RunnerOptions::default());
    let observer: tally_engine::runner::Observer = Arc::new(|_| panic!("as the test says"));
    let started = Runner::start(memory, catalog(), ManualClock::at(1), options, observer).await;
    let (runner, _done) = started.unwrap();
    assert!(!runner.has_ended());
    assert!(runner.apply(Call::system(like("alice"))).await.is_err(), "nobody is left to answer");
    until(|| runner.has_ended()).await;
}
