//! A Redis that is killed, stopped or stands still under load, and comes back.

use std::sync::atomic::{AtomicUsize, Ordering};

use tally_core::command::Call;
use tally_engine::{Engine, Failure, StoreError};
use tally_testing::Redis;
use tally_testing::redis::Options;
use tokio::task::JoinSet;

use crate::support::{Store, blocking, edge, relate, until};
use tally_conformance::network::{Hands, POSTS};

async fn under_load(redis: &Redis) -> (Store, Hands) {
    let store = Store::open(&format!("{}?timeout_ms=400", redis.url())).await;
    let hands = store.hands();
    hands.until_answered(100).await;
    (store, hands)
}

/// What the list says, asked for by somebody who knows nothing of Tally.
fn length(redis: &Redis, post: &str) -> i64 {
    redis.ask(&["ZCARD", &format!("tally:o:{{{post}}}:like")]).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_loses_nothing_that_was_answered_when_every_write_is_synced() {
    let mut redis = Redis::start(Options::durable()).unwrap();
    let (store, hands) = under_load(&redis).await;
    for _ in 0..10 {
        blocking(|| redis.kill()).unwrap();
        hands.until_failed().await;
        assert!(store.engine.ping().await.unwrap_err().is_transient());
        blocking(|| redis.start_again()).unwrap();
        hands.until_answered(100).await;
    }
    store.check(hands).await;
    for post in POSTS {
        assert_eq!(store.count(post).await.unwrap(), length(&redis, post));
    }
    until("it is well again", async || store.engine.ping().await.ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_under_load_loses_nothing() {
    let mut redis = Redis::start(Options::durable()).unwrap();
    let (store, hands) = under_load(&redis).await;
    for _ in 0..3 {
        blocking(|| redis.restart()).unwrap();
        hands.until_answered(100).await;
    }
    store.check(hands).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_stands_still_is_unavailable_until_it_goes_on() {
    let redis = Redis::start(Options::default()).unwrap();
    let (store, hands) = under_load(&redis).await;
    for _ in 0..3 {
        blocking(|| redis.pause()).unwrap();
        hands.until_failed().await;
        assert!(store.count("post:1").await.unwrap_err().is_transient());
        redis.go_on().unwrap();
        hands.until_answered(100).await;
    }
    store.check(hands).await;
}

/// Likes one after another, each of somebody new, until a call fails. Gives how many of each hand were answered.
async fn likes_until_failed(store: &Store, answered: &std::sync::Arc<AtomicUsize>, round: usize) -> Vec<usize> {
    let mut hands = JoinSet::new();
    for hand in 0..4 {
        let (runner, answered) = (store.runner.clone(), answered.clone());
        hands.spawn(async move {
            for number in 0.. {
                let like = relate("like", "post:1", &format!("fan-{round}-{hand}-{number}"));
                match runner.apply(Call::system(like)).await {
                    Ok(decided) => assert!(edge(decided.reply.unwrap()).changed),
                    Err(Failure::Store(StoreError::Unavailable(_))) => return (hand, number),
                    Err(other) => panic!("{other}"),
                }
                answered.fetch_add(1, Ordering::SeqCst);
            }
            unreachable!("numbers do not end")
        });
    }
    let mut ends = hands.join_all().await;
    ends.sort_unstable();
    ends.into_iter().map(|(_, number)| number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_kill_takes_from_a_redis_that_syncs_every_second_is_the_end_and_the_rest_adds_up() {
    let mut redis = Redis::start(Options { appendonly: true, ..Options::default() }).unwrap();
    let answered = std::sync::Arc::new(AtomicUsize::new(0));
    let mut likes = 0;
    for round in 0..3 {
        let store = Store::open(&format!("{}?timeout_ms=400", redis.url())).await;
        let goal = answered.load(Ordering::SeqCst) + 300;
        let liking = tokio::spawn({
            let answered = answered.clone();
            async move { likes_until_failed(&store, &answered, round).await }
        });
        until("likes are answered", async || (answered.load(Ordering::SeqCst) >= goal).then_some(())).await;
        blocking(|| redis.kill()).unwrap();
        let told = liking.await.unwrap();
        blocking(|| redis.start_again()).unwrap();
        let members = redis.ask(&["ZRANGE", "tally:o:{post:1}:like", "0", "-1"]).unwrap();
        let there: std::collections::BTreeSet<&str> = members.lines().collect();
        for (hand, told) in told.into_iter().enumerate() {
            let has = |number: usize| there.contains(format!("fan-{round}-{hand}-{number}").as_str());
            // At most one call was under way; of the others a first part is there, without a hole in it.
            let kept = (0..=told).take_while(|number| has(*number)).count();
            assert!(!(kept..=told + 1).any(has), "hand {hand}: something later is there, something earlier is not");
            println!("hand {hand}: {told} answered, {kept} there after the kill");
        }
        likes = there.len();
    }
    let store = Store::open(&redis.url()).await;
    assert_eq!(store.assert_sound().await, likes as u64);
    assert_eq!(store.count("post:1").await.unwrap(), likes as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_takes_a_redis_without_a_log_back_to_its_last_snapshot() {
    let mut redis = Redis::start(Options::default()).unwrap();
    let store = Store::open(&format!("{}?timeout_ms=400", redis.url())).await;
    for who in ["alice", "bob"] {
        store.like("post:1", who).await.unwrap();
    }
    redis.ask(&["SAVE"]).unwrap();
    store.like("post:1", "carol").await.unwrap();
    store.like("post:2", "dave").await.unwrap();
    blocking(|| redis.kill()).unwrap();
    blocking(|| redis.start_again()).unwrap();
    until("it is well again", async || store.engine.ping().await.ok()).await;
    assert_eq!(store.count("post:1").await.unwrap(), 2, "what was saved is there, and nothing else");
    assert_eq!(store.assert_sound().await, 2);
    // A server that was up all the while goes on with what is left.
    assert_eq!(store.like("post:2", "carol").await.unwrap().count, 1);
    assert!(!store.like("post:1", "alice").await.unwrap().changed);
    assert_eq!(store.assert_sound().await, 3);
}
