//! A connection that is cut at any message of a commit, in either direction. What was done is then told as it was; what is told
//! to have failed was not done, since there was all the time to find that out.

use serde_json::json;
use tally_core::Command;
use tally_core::command::{Decided, Relate};
use tally_core::reply::Reply;
use tally_core::rows::{Seq, TotalKey};
use tally_engine::{CommitError, Committed, Engine, Failure, SystemClock};
use tally_testing::until;
use tokio::task::JoinSet;

use super::Networked;
use super::wires::Spots;
use crate::auditor::findings;
use crate::driver::{Draft, Hand};
use crate::joins::{Joins, queue_of, stands_at};
use crate::running::Running;
use crate::sample::{add, batch, catalog, count_of, counter, meta, name, object, relate, subject};
use crate::stand::Stand;

/// More than one cut can take.
const ATTEMPTS_MAX: usize = 5;

/// Does it until it is answered: otherwise it was certainly not done. Only the first time is cut.
async fn answered<T>(spots: &Spots<'_>, mut attempt: impl AsyncFnMut(bool) -> Result<T, CommitError>) -> T {
    for again in 0..ATTEMPTS_MAX {
        match attempt(again == 0).await {
            Ok(answer) => return answer,
            Err(CommitError::Conflict) => {}
            Err(CommitError::Store(error)) if error.is_transient() => {}
            Err(error) => panic!("{spots}: {error}"),
        }
    }
    panic!("{spots}: it is never done")
}

/// Decides a command, and cuts its commit.
async fn run<E: Engine>(spots: &Spots<'_>, hand: &mut Hand<'_, E>, command: Command) -> (Draft, Committed) {
    let engine = hand.engine;
    answered(spots, async |first| {
        let step = hand.step(command.clone());
        // A connection may be found to be gone only now.
        let draft = until("it is decided", async || Draft::try_new(engine, hand.catalog, &step).await.ok()).await;
        assert!(!draft.changes.is_empty(), "{spots}: it was done, and said not to be");
        if first {
            spots.arm();
        }
        let committed = draft.commit(engine).await?;
        engine.settle(committed.mark).await?;
        Ok((draft, committed))
    })
    .await
}

/// What the commit tells of a total.
fn told(draft: &Draft, committed: &Committed, total: &TotalKey) -> Option<i64> {
    let place = draft.changes.adds.iter().position(|(key, _)| key == total)?;
    committed.totals.as_ref().map(|totals| totals[place])
}

/// On an engine whose connections are all whole.
async fn assert_sound<F: Networked>(stand: &Stand<F>) {
    let engine = stand.open().await;
    stand.drain(&engine).await;
    assert_eq!(findings(&*engine).await, Vec::<String>::new(), "the audit found something");
}

pub(super) async fn a_like_is_told_and_done_once<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind();
    let (engine, catalog, mut spots, mut likes) = (near.open().await, catalog(), Spots::of(&wires), 0);
    let mut hand = Hand::new(&*engine, &catalog);
    loop {
        let (draft, committed) = run(&spots, &mut hand, relate("like", "post:1", &format!("fan{likes}"))).await;
        likes += 1;
        assert_eq!(told(&draft, &committed, &count_of("like", "post:1")), Some(likes), "{spots}");
        if !spots.step() {
            break;
        }
    }
    assert_sound(&near).await;
}

pub(super) async fn a_counter_is_told_and_added_to_once<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind();
    let (engine, catalog, mut spots, mut value) = (near.open().await, catalog(), Spots::of(&wires), 0);
    let mut hand = Hand::new(&*engine, &catalog);
    loop {
        let (draft, committed) = run(&spots, &mut hand, add("home", 3)).await;
        value += 3;
        assert_eq!(told(&draft, &committed, &counter("home")), Some(value), "{spots}");
        if !spots.step() {
            break;
        }
    }
}

/// More than the network carries in one piece, and in several places of a store.
pub(super) async fn a_long_batch_is_told_and_done_once<F: Networked>(stand: Stand<F>) {
    const EACH: i64 = 20;
    let (wires, near) = stand.behind();
    let (engine, catalog, mut spots, mut rounds) = (near.open().await, catalog(), Spots::of(&wires), 0);
    let mut hand = Hand::new(&*engine, &catalog);
    let long = Some(meta(&json!({"text": "x".repeat(10_000)})));
    loop {
        let likes = (0..EACH).map(|n| {
            let (relation, object, subject) = (name("like"), object("post:1"), subject(&format!("fan{rounds}n{n}")));
            Command::from(Relate { relation, object, subject, kind: None, meta: long.clone() })
        });
        let counts = ["home", "about", "news"].map(|page| add(page, 1));
        let (draft, committed) = run(&spots, &mut hand, batch(likes.chain(counts))).await;
        rounds += 1;
        assert_eq!(told(&draft, &committed, &count_of("like", "post:1")), Some(EACH * rounds), "{spots}");
        for page in ["home", "about", "news"] {
            assert_eq!(told(&draft, &committed, &counter(page)), Some(rounds), "{spots}");
        }
        if !spots.step() {
            break;
        }
    }
    assert_sound(&near).await;
}

/// These join: decided, and certainly not done yet.
async fn decided<E: Engine>(spots: &Spots<'_>, engine: &E, who: &[(&str, &str)]) -> Joins {
    let joins = until("it is decided", async || Joins::new(engine, who).await.ok()).await;
    assert!(!joins.changes().is_empty(), "{spots}: it was done, and said not to be");
    joins
}

/// These join, and the commit is cut.
async fn join<E: Engine>(spots: &Spots<'_>, engine: &E, who: &[(&str, &str)]) -> Vec<u64> {
    answered(spots, async |first| {
        let joins = decided(spots, engine, who).await;
        if first {
            spots.arm();
        }
        joins.commit(engine).await
    })
    .await
}

pub(super) async fn numbers_are_told_and_taken_once<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind();
    let (engine, mut spots) = (near.open().await, Spots::of(&wires));
    let (mut sale, mut gate) = (Vec::new(), Vec::new());
    loop {
        let [one, two] = [0, 1].map(|number| format!("s{}", sale.len() + number));
        let numbers = join(&spots, &*engine, &[("sale", &one), ("gate", &one), ("sale", &two)]).await;
        let (in_sale, in_gate) = (sale.len() as u64, gate.len() as u64);
        assert_eq!(numbers, [in_sale + 1, in_gate + 1, in_sale + 2], "{spots}");
        gate.push(one.clone());
        sale.extend([one, two]);
        if !spots.step() {
            break;
        }
    }
    // One whose connections are all whole.
    let engine = near.open().await;
    near.drain(&engine).await;
    assert_eq!(queue_of(&*engine, "sale").await, sale);
    assert_eq!(queue_of(&*engine, "gate").await, gate);
}

/// Who joins is told how many wait before it, while the first of the queue leaves in the same commit.
pub(super) async fn positions_are_told_as_they_are<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind();
    let (engine, mut spots) = (near.open().await, Spots::of(&wires));
    join_unharmed(&*engine, &["s0", "s1", "s2"]).await;
    let mut left = 0;
    loop {
        let who = format!("s{}", left + 3);
        let (numbers, ranks) = answered(&spots, async |first| {
            let mut joins = decided(&spots, &*engine, &[("sale", &who)]).await;
            joins.leave("sale", left + 1, &format!("s{left}"));
            // And of one that waited before.
            joins.show(&*engine, &[stands_at("sale", Seq::Given(left + 3))]).await?;
            if first {
                spots.arm();
            }
            joins.commit_told(&*engine).await
        })
        .await;
        assert_eq!((numbers, ranks), (vec![left + 4], vec![2, 1]), "{spots}");
        left += 1;
        if !spots.step() {
            break;
        }
    }
    let everybody: Vec<String> = (0..left + 3).map(|number| format!("s{number}")).collect();
    // One whose connections are all whole.
    let engine = near.open().await;
    near.drain(&engine).await;
    assert_eq!(queue_of(&*engine, "sale").await, everybody);
}

async fn join_unharmed<E: Engine>(engine: &E, who: &[&str]) {
    let who: Vec<(&str, &str)> = who.iter().map(|who| ("sale", *who)).collect();
    crate::joins::join(engine, &who).await.expect("nothing is in its way yet");
}

/// A runner makes one commit of what many want, and each of them is told its own value.
pub(super) async fn calls_that_share_a_commit_are_each_told_once<F: Networked>(stand: Stand<F>) {
    const CALLS: i64 = 12;
    let (wires, near) = stand.behind();
    let (engine, mut spots, mut before) = (near.open().await, Spots::of(&wires), 0);
    let running = Running::start(&engine, &catalog(), SystemClock).await;
    running.run(add("home", 0)).await;
    loop {
        spots.arm();
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let runner = running.runner.clone();
            calls.spawn(async move { runner.apply(crate::sample::call(add("home", 1))).await });
        }
        let mut values = Vec::new();
        for answer in calls.join_all().await {
            match answer {
                Ok(Decided { reply: Ok(Reply::Counter(count)), .. }) => values.push(count.value),
                Err(Failure::Store(error)) if error.is_transient() => {}
                other => panic!("{spots}: {other:?}"),
            }
        }
        values.sort_unstable();
        let after = before + values.len() as i64;
        assert_eq!(values, (before + 1..=after).collect::<Vec<_>>(), "{spots}: each value once");
        before = after;
        if !spots.step() {
            break;
        }
    }
    running.stop().await;
}

/// Both join at once, and one of them is cut.
pub(super) async fn two_servers_take_numbers_once<F: Networked>(stand: Stand<F>) {
    let (wires, near) = stand.behind();
    let (engines, mut spots) = ([near.open().await, near.open().await], Spots::of(&wires));
    let mut expected: Vec<(u64, String)> = Vec::new();
    loop {
        let mut joining = Vec::new();
        for (server, engine) in engines.iter().enumerate() {
            let who = format!("s{}of{server}", expected.len());
            let joins = decided(&spots, &**engine, &[("sale", &who)]).await;
            joining.push((engine, who, joins));
        }
        spots.arm();
        let commits = joining.into_iter().map(async |(engine, who, joins)| {
            let numbers = answered(&spots, async |first| match first {
                true => joins.commit(&**engine).await,
                false => decided(&spots, &**engine, &[("sale", &who)]).await.commit(&**engine).await,
            });
            (numbers.await[0], who)
        });
        let [one, two] = commits.collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("there are two servers"));
        let (one, two) = tokio::join!(one, two);
        expected.extend([one, two]);
        if !spots.step() {
            break;
        }
    }
    expected.sort_unstable();
    let engine = near.open().await;
    near.drain(&engine).await;
    let queue = queue_of(&*engine, "sale").await;
    assert_eq!(expected, (1..).zip(queue).collect::<Vec<_>>(), "told on the left, and what is there on the right");
}
