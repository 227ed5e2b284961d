//! Nodes whose clocks are hours apart: the store has one time all the same, and it goes on whichever node gives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tally_core::command::{Call, Command, DeleteObject, Forget, Sweep};
use tally_core::rows::{CountKey, EdgeKey, JobId, JobKind, Key, ListKey, Side, TotalKey};
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_core::{KeyId, ObjectId, SubjectId};
use tally_engine::{Engine, Failure, Lease, Range, StoreError, Together};
use tally_testing::redis::Options;
use tally_testing::redis::cluster::HOURS_APART;
use tally_testing::{Cluster, ClusterOptions, Redis};
use tokio::task::JoinSet;

use crate::support::{Store, blocking, count, engine, name, until};

/// Half an hour: what is off by a clock is off by more, what is off by waiting by less.
const HALF_AN_HOUR_US: u64 = 1_800_000_000;

fn hours_apart() -> Cluster {
    let options = ClusterOptions { clocks_ahead_s: HOURS_APART.into(), ..ClusterOptions::default() };
    Cluster::start(options).unwrap()
}

/// The master of a key.
fn master_of(cluster: &Cluster, key: &str) -> usize {
    cluster.master_of_slot(cluster.slot_of(key).unwrap()).unwrap()
}

async fn now(engine: &tally_redis::Redis) -> Option<Stamp> {
    engine.load(&Wants::default()).await.ok().map(|loaded| loaded.now.expect("a shared store always tells the time"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_later_is_listed_first_whichever_node_has_it() {
    let cluster = blocking(hours_apart);
    let stores = [Store::open(&cluster.url()).await, Store::open(&cluster.url()).await];
    let posts: Vec<String> = (0..40).map(|number| format!("post:{number}")).collect();
    for (number, post) in posts.iter().enumerate() {
        stores[number % 2].like(post, "alice").await.unwrap();
    }
    let list = ListKey { side: Side::Subject, id: "alice".into(), relation: Some(name("like")), hidden: false };
    let page = stores[0].engine.scan(&Range::List { list, after: None }, 100).await.unwrap();
    let listed = page.items.iter().map(|(key, _)| match key {
        Key::Edge(edge) => edge.object.to_string(),
        other => panic!("{other:?}"),
    });
    assert_eq!(listed.collect::<Vec<_>>(), posts.into_iter().rev().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn time_goes_on_when_a_node_with_another_clock_takes_over() {
    let mut cluster = blocking(hours_apart);
    let engine = engine(&format!("{}?timeout_ms=1000", cluster.url()));
    engine.prepare().await.unwrap();
    let mut last = now(&engine).await.unwrap();
    // There, and back again: one of them is ahead of the other.
    for _ in 0..2 {
        let master = blocking(|| master_of(&cluster, "tally:sys:{sys}:time"));
        blocking(|| cluster.kill(master)).unwrap();
        let mut seen = 0;
        let mut asks = async || {
            let time = now(&engine).await?;
            assert!(time >= last, "time ran backwards by {} us", last.0 - time.0);
            assert!(time.0 < last.0 + HALF_AN_HOUR_US, "time leapt by {} us", time.0 - last.0);
            last = time;
            seen += 1;
            (seen > 20).then_some(())
        };
        until("the time is told while nobody gives it", &mut asks).await;
        blocking(|| cluster.wait_for_failover(master)).unwrap();
        until("the time is told by who took over", &mut asks).await;
        blocking(|| cluster.start_again(master)).unwrap();
        blocking(|| cluster.wait_until_healthy()).unwrap();
        until("the time is told", &mut asks).await;
    }
    // Whoever comes now is told the same.
    let other = crate::support::engine(&cluster.url());
    let time = now(&other).await.unwrap();
    assert!(time >= last && time.0 < last.0 + HALF_AN_HOUR_US);
}

#[tokio::test(flavor = "multi_thread")]
async fn additions_count_once_when_a_node_with_another_clock_takes_over() {
    let mut cluster = blocking(hours_apart);
    let store = Store::open(&format!("{}?wait_replicas=1&timeout_ms=1000", cluster.url())).await;
    let (ended, answered, unsure) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let mut hands = JoinSet::new();
    for _ in 0..6 {
        let (runner, ended) = (store.runner.clone(), ended.clone());
        let (answered, unsure) = (answered.clone(), unsure.clone());
        hands.spawn(async move {
            while !ended.load(Ordering::SeqCst) {
                match runner.apply(Call::system(count("hot", 1))).await {
                    Ok(decided) => {
                        assert!(decided.reply.is_ok());
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                    Err(Failure::Store(StoreError::Unavailable(_))) => _ = unsure.fetch_add(1, Ordering::SeqCst),
                    Err(Failure::Overloaded) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        });
    }
    let until_answered = async |more: i64| {
        let goal = answered.load(Ordering::SeqCst) + more;
        until("additions are answered", async || (answered.load(Ordering::SeqCst) >= goal).then_some(())).await;
    };
    until_answered(50).await;
    for _ in 0..2 {
        let master = blocking(|| master_of(&cluster, "tally:counter:{hot}"));
        blocking(|| cluster.kill(master)).unwrap();
        blocking(|| cluster.wait_for_failover(master)).unwrap();
        blocking(|| cluster.start_again(master)).unwrap();
        blocking(|| cluster.wait_until_healthy()).unwrap();
        until_answered(50).await;
    }
    ended.store(true, Ordering::SeqCst);
    while let Some(hand) = hands.join_next().await {
        hand.unwrap();
    }
    let total = TotalKey::Counter(CountKey { name: name("views"), key: KeyId::new("hot").unwrap() });
    let value = store.engine.load(&Wants::totals(vec![total])).await.unwrap().totals[0];
    let (answered, unsure) = (answered.load(Ordering::SeqCst), unsure.load(Ordering::SeqCst));
    println!("{answered} answered, {unsure} failed, counted {value}");
    assert!((answered..=answered + unsure).contains(&value), "{answered} answered, {unsure} failed, counted {value}");
}

/// A clock that is set back does not stop the time; and one that was a year ahead once does not stop it for a year.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_wrong_does_not_stop_the_time() {
    for (ahead_s, keeps) in [(3_600, true), (400 * 86_400, false)] {
        let wrong = blocking(|| Redis::start(Options { clock_ahead_s: ahead_s, ..Options::durable() })).unwrap();
        let store = Store::open(&wrong.url()).await;
        store.like("post:1", "alice").await.unwrap();
        let before = now(&store.engine).await.unwrap();
        let right = take_over(&wrong).await;
        let store = Store::open(&right.url()).await;
        let after = now(&store.engine).await.unwrap();
        assert_eq!(after >= before, keeps, "{before:?} {after:?}");
        assert!(after.0 < before.0 + HALF_AN_HOUR_US);
        // It does not stand still.
        let first = now(&store.engine).await.unwrap();
        until("time goes on", async || (now(&store.engine).await?.0 > first.0 + 100_000).then_some(())).await;
        store.like("post:2", "alice").await.unwrap();
    }
}

/// Another with the right clock takes the place of a Redis.
async fn take_over(wrong: &Redis) -> Redis {
    let right = blocking(|| Redis::start(Options::default())).unwrap();
    right.ask(&["REPLICAOF", "127.0.0.1", &wrong.port().to_string()]).unwrap();
    let follows = async || right.ask(&["INFO", "replication"]).unwrap().contains("master_link_status:up").then_some(());
    until("it follows", follows).await;
    right.ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    right
}

/// What was made while a clock was wrong is older than whatever is asked for when it is right again.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_liked_while_the_clock_was_wrong_is_forgotten() {
    for ahead_s in [3_600, 2 * 86_400] {
        let wrong = blocking(|| Redis::start(Options { clock_ahead_s: ahead_s, ..Options::durable() })).unwrap();
        let store = Store::open(&wrong.url()).await;
        store.like("post:1", "alice").await.unwrap();
        store.like("post:doomed", "bob").await.unwrap();
        let right = take_over(&wrong).await;
        let store = Store::open(&right.url()).await;
        store.apply(Command::from(Forget { subject: SubjectId::new("alice").unwrap() })).await.unwrap();
        store.apply(Command::from(DeleteObject { object: ObjectId::new("post:doomed").unwrap() })).await.unwrap();
        store.like("post:2", "alice").await.unwrap();
        let (forgetting, clearing) = (JobId::of(JobKind::Forget, "alice"), JobId::of(JobKind::Clear, "post:doomed"));
        for (job, object, subject) in
            [(forgetting, "post:1", "alice"), (forgetting, "post:2", "alice"), (clearing, "post:doomed", "bob")]
        {
            let (object, subject) = (ObjectId::new(object).unwrap(), SubjectId::new(subject).unwrap());
            let edges = vec![EdgeKey { object, relation: name("like"), subject }];
            store.apply(Command::from(Sweep { job, before: Stamp(u64::MAX), edges })).await.unwrap();
        }
        assert_eq!(store.count("post:1").await.unwrap(), 0, "ahead by {ahead_s} s");
        assert_eq!(store.count("post:doomed").await.unwrap(), 0, "ahead by {ahead_s} s");
        assert_eq!(store.count("post:2").await.unwrap(), 1, "ahead by {ahead_s} s: what is new stays");
        store.assert_sound().await;
    }
}

/// The work of a server that died is taken over, though what it held is from a clock that was ahead.
#[tokio::test(flavor = "multi_thread")]
async fn work_is_taken_over_when_a_node_with_another_clock_is() {
    let wrong = blocking(|| Redis::start(Options { clock_ahead_s: 3_600, ..Options::durable() })).unwrap();
    let first = Store::open(&wrong.url()).await;
    until("the first one holds it", async || first.engine.lease(Lease::Jobs).await.ok().filter(|held| *held)).await;
    let right = take_over(&wrong).await;
    let second = Store::open(&right.url()).await;
    until("the second one holds it", async || second.engine.lease(Lease::Jobs).await.ok().filter(|held| *held)).await;
    let third = Store::open(&right.url()).await;
    assert_eq!(third.engine.lease(Lease::Jobs).await, Ok(false), "one at a time");
}
