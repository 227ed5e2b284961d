//! Answers that never come, while somebody else sees what became of the commit.

use tally_core::reply::{EdgeReply, Reply};
use tally_core::rows::TotalKey;
use tally_core::view::Wants;
use tally_engine::{CommitError, Engine, Failure, StoreError, SystemClock};
use tally_testing::until;

use super::{Hands, Networked, Stopping};
use crate::auditor::findings;
use crate::driver::Hand;
use crate::joins::{Joins, join, last, queue_of};
use crate::running::Running;
use crate::sample::{add, catalog, count_of, counter, relate};
use crate::stand::Stand;

async fn total<E: Engine>(engine: &E, key: TotalKey) -> Result<i64, StoreError> {
    Ok(engine.load(&Wants::totals(vec![key])).await?.totals[0])
}

/// Runs on what was decided before, where nobody hears the answer until it is known outside to be done.
async fn swallowed<T: Send + 'static>(
    wires: &super::wires::Wires,
    commit: impl Future<Output = T> + Send + 'static,
    is_done: impl AsyncFn() -> bool,
    meanwhile: impl AsyncFnOnce(),
) -> T {
    wires.drop_answers();
    let calling = tokio::spawn(commit);
    until("it is done", async || is_done().await.then_some(())).await;
    meanwhile().await;
    wires.pass();
    calling.await.expect("a call ends without a panic")
}

fn edge(answer: Result<Reply, impl std::fmt::Debug>) -> EdgeReply {
    match answer {
        Ok(Reply::Relation(edge)) => edge,
        other => panic!("{other:?} is not an edge"),
    }
}

pub(super) async fn a_swallowed_answer_is_found_out<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind();
    let (engine, outside) = (near.open().await, stand.open().await);
    let stopping = Stopping::new(engine.clone());
    let running = Running::start(&stopping, &catalog(), SystemClock).await;
    // What is done on a connection for the first time is explained to the store before it is sent.
    let rounds = [
        (relate("like", "post:1", "before"), relate("like", "post:1", "alice")),
        (add("home", 1), add("home", 1)),
        (add("home", 1), add("home", 1)),
    ];
    for (round, (first, command)) in (0..).zip(rounds) {
        running.run(first).await;
        let value = async || {
            let (likes, views) = (count_of("like", "post:1"), counter("home"));
            let loaded = outside.load(&Wants::totals(vec![likes, views])).await;
            loaded.expect("nothing is in its way").totals.iter().sum::<i64>()
        };
        let before = value().await;
        let (stop, runner) = (stopping.arm().await, running.runner.clone());
        let calling = tokio::spawn(async move { runner.apply(crate::sample::call(command)).await });
        stop.reached.await.expect("it comes as far");
        let commit = async {
            stop.go_on.send(()).expect("it waits");
            calling.await.expect("a call ends without a panic")
        };
        let answer = swallowed(&wires, commit, async || value().await > before, async || {}).await;
        match answer.expect("the answer was found out").reply {
            Ok(Reply::Relation(edge)) => assert_eq!((edge.changed, edge.active, edge.count), (true, true, 2)),
            Ok(Reply::Counter(count)) => assert_eq!(count.value, 2 * round),
            other => panic!("{other:?}"),
        }
        assert_eq!(value().await, before + 1, "it was not done again");
    }
    running.stop().await;
    stand.drain(&outside).await;
    assert_eq!(findings(&*outside).await, Vec::<String>::new(), "the audit found something");
}

pub(super) async fn numbers_of_a_swallowed_answer_are_its_own<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind();
    let (engine, other) = (near.open().await, stand.open().await);
    assert_eq!(join(&*engine, &[("sale", "ann"), ("gate", "ann"), ("sale", "bob")]).await, Ok(vec![1, 1, 2]));
    let joins = Joins::new(&*engine, &[("sale", "eve"), ("gate", "eve"), ("sale", "dan")]).await.expect("a load works");
    let commit = {
        let engine = engine.clone();
        async move { joins.commit(&*engine).await }
    };
    // Others take some before anybody asks what became of it.
    let meanwhile =
        async || assert_eq!(join(&*other, &[("sale", "fay"), ("gate", "fay")]).await, Ok(vec![5, 3]), "those behind");
    let numbers = swallowed(&wires, commit, async || last(&*other, "sale").await == 4, meanwhile).await;
    assert_eq!(numbers, Ok(vec![3, 2, 4]), "its own, and not those that came after");
    assert_eq!(join(&*engine, &[("sale", "gus")]).await, Ok(vec![6]));
    stand.drain(&other).await;
    assert_eq!(queue_of(&*other, "sale").await, ["ann", "bob", "eve", "dan", "fay", "gus"]);
    assert_eq!(queue_of(&*other, "gate").await, ["ann", "eve", "fay"]);
}

/// Whoever is told late may be told of a later moment: of those before it some have left, and nobody has come.
pub(super) async fn positions_of_a_swallowed_answer_are_of_a_moment_after_it<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind();
    let (engine, other) = (near.open().await, stand.open().await);
    assert_eq!(join(&*engine, &[("sale", "ann"), ("sale", "bob"), ("sale", "cid")]).await, Ok(vec![1, 2, 3]));
    let decided = async |leaves: (u64, &str), who: &[(&str, &str)]| {
        let mut joins = Joins::new(&*engine, who).await.expect("a load works");
        joins.leave("sale", leaves.0, leaves.1);
        joins.show(&*engine, &[]).await.expect("a load works");
        joins
    };
    let zoe = decided((3, "cid"), &[("sale", "zoe"), ("gate", "zoe")]).await;
    assert_eq!(zoe.commit_told(&*engine).await, Ok((vec![4, 1], vec![2, 0])));
    let joins = decided((2, "bob"), &[("sale", "eve"), ("gate", "eve"), ("sale", "dan")]).await;
    let commit = {
        let engine = engine.clone();
        async move { joins.commit_told(&*engine).await }
    };
    let meanwhile = async || {
        let mut joins = Joins::new(&*other, &[("sale", "fay"), ("gate", "fay")]).await.expect("a load works");
        joins.leave("sale", 1, "ann");
        joins.show(&*other, &[]).await.expect("a load works");
        let told = joins.commit_told(&*other).await;
        assert_eq!(told, Ok((vec![7, 3], vec![3, 2])), "zoe, eve and dan are before it");
    };
    let told = swallowed(&wires, commit, async || last(&*other, "sale").await == 6, meanwhile).await;
    let (numbers, ranks) = told.expect("the answer was found out");
    assert_eq!(numbers, [5, 2, 6]);
    assert!([[2, 1, 3], [1, 1, 2]].contains(&[ranks[0], ranks[1], ranks[2]]), "{ranks:?}: of no moment");
    stand.drain(&other).await;
    assert_eq!(queue_of(&*other, "sale").await, ["ann", "bob", "cid", "zoe", "eve", "dan", "fay"]);
}

/// What was sent may arrive when nobody waits for it any more.
pub(super) async fn a_commit_that_hangs_is_done_at_most_once<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind_shortly();
    let (engine, outside, catalog) = (near.open().await, stand.open().await, catalog());
    let mut hand = Hand::new(&*engine, &catalog);
    let mut most = 0;
    for round in 0..3 {
        hand.run(add("home", 1)).await;
        let draft = hand.draft(add("home", 1)).await;
        wires.hang();
        let failed = draft.commit(&*engine).await.expect_err("nothing is answered");
        assert!(matches!(&failed, CommitError::Store(error) if error.is_transient()), "{round}: {failed}");
        wires.pass();
        most += 2;
        until("it answers", async || engine.ping().await.ok()).await;
        hand.run(add("after", 1)).await;
        let there = total(&*outside, counter("home")).await.expect("nothing is in its way");
        assert!((round + 1..=most).contains(&there), "{round}: {there}");
    }
    assert_eq!(total(&*outside, counter("after")).await, Ok(3), "what was answered was done once");
}

pub(super) async fn a_partition_is_said_to_be_one_and_ends<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind_shortly();
    let (engine, outside) = (near.open().await, stand.open().await);
    let running = Running::start(&engine, &catalog(), SystemClock).await;
    running.run(relate("like", "post:1", "before")).await;
    let hands = Hands::on(&running.runner, "hand");
    hands.until_answered(20).await;
    wires.hang();
    hands.until_failed().await;
    let answer = running.apply(relate("like", "post:1", "alice")).await;
    assert!(matches!(answer, Err(Failure::Store(StoreError::Unavailable(_)))), "{answer:?}");
    let why = total(&*engine, count_of("like", "post:1")).await.expect_err("nothing is answered");
    assert!(why.is_transient(), "{why}");
    assert!(engine.ping().await.expect_err("nothing is answered").is_transient());
    // Another server does not notice.
    let beside = Running::start(&outside, &catalog(), SystemClock).await;
    beside.run(relate("like", "post:2", "bob")).await;
    wires.pass();
    hands.until_answered(50).await;
    hands.check(&*outside).await;
    let again = edge(
        running
            .apply(relate("like", "post:1", "before"))
            .await
            .map(|decided| decided.reply.expect("nothing here is to be refused")),
    );
    assert!(!again.changed, "what was answered is there");
    until("it is well again", async || engine.ping().await.ok()).await;
    running.stop().await;
    beside.stop().await;
    stand.drain(&outside).await;
    assert_eq!(findings(&*outside).await, Vec::<String>::new(), "the audit found something");
}
