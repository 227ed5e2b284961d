//! How much is written, and that a count is its edges at any moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tally_core::rows::{EdgeKey, Key};
use tally_core::view::Wants;
use tally_core::{ObjectId, SubjectId};
use tally_engine::Engine;
use tally_testing::Redis;
use tally_testing::redis::Options;
use tokio::task::JoinSet;

use crate::support::{Store, name, relate, shared, toggle, total, until};

/// How often a command was run, by whomever.
fn calls(redis: &Redis, command: &str) -> u64 {
    let all = redis.ask(&["INFO", "commandstats"]).unwrap();
    let line = all.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_likes_of_one_machine_are_one_write() {
    let redis = Redis::start(Options::durable()).unwrap();
    let store = Arc::new(Store::open(&redis.url()).await);
    let mut bots = JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        bots.spawn(async move {
            let mut changed = 0;
            for _ in 0..125 {
                let edge = store.like("post:1", "bot").await.unwrap();
                assert!(edge.active && edge.count == 1, "{edge:?}");
                changed += u32::from(edge.changed);
            }
            changed
        });
    }
    assert_eq!(bots.join_all().await.into_iter().sum::<u32>(), 1);
    // Its place in both lists, the list in the index, and twice what the server did last.
    assert_eq!(calls(&redis, "zadd"), 5);
    for _ in 0..1_000 {
        store.like("post:1", "bot").await.unwrap();
    }
    // The time is written down now and then.
    let written = ["zadd", "zrem", "hset", "hdel", "zremrangebyscore"].map(|command| calls(&redis, command));
    assert_eq!(written, [5, 0, 0, 0, 1], "nothing more was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_is_its_edges_at_any_moment() {
    const FANS: usize = 12;
    let url = shared("");
    let (store, looking) = (Arc::new(Store::open(&url).await), Store::open(&url).await);
    let ended = Arc::new(AtomicBool::new(false));
    let mut hands = JoinSet::new();
    for fan in 0..FANS {
        let (store, ended) = (store.clone(), ended.clone());
        hands.spawn(async move {
            while !ended.load(Ordering::SeqCst) {
                store.apply(toggle("post:1", &format!("fan-{fan}"))).await.unwrap();
            }
        });
    }
    let edge = |fan: usize| {
        let (object, subject) = (ObjectId::new("post:1").unwrap(), SubjectId::new(&format!("fan-{fan}")).unwrap());
        Key::Edge(EdgeKey { object, relation: name("like"), subject })
    };
    let wants = Wants { rows: (0..FANS).map(edge).collect(), totals: vec![total("post:1")], ..Wants::default() };
    let mut seen = std::collections::BTreeSet::new();
    let mut looks = 0;
    until("counts were seen to change", async || {
        let loaded = looking.engine.load(&wants).await.unwrap();
        let there = loaded.rows.iter().flatten().count() as i64;
        assert_eq!(loaded.totals[0], there, "a load is of one moment");
        seen.insert(there);
        looks += 1;
        (looks > 200 && seen.len() > 3).then_some(())
    })
    .await;
    ended.store(true, Ordering::SeqCst);
    hands.join_all().await;
    looking.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_for_servers_that_write_at_once() {
    let url = shared("");
    let stores = [Arc::new(Store::open(&url).await), Arc::new(Store::open(&url).await)];
    for round in 0..40 {
        let mut calling = JoinSet::new();
        for number in 0..8 {
            let store = stores[number % 2].clone();
            let (book, who) = (format!("book:{number}"), format!("reader-{round}"));
            let call = tally_core::command::Call::system(relate("shelf", &book, &who));
            calling.spawn(async move { store.runner.apply(call).await.unwrap().reply.is_ok() });
        }
        let taken = calling.join_all().await.into_iter().filter(|taken| *taken).count();
        assert_eq!(taken, 3, "round {round}");
    }
    assert_eq!(stores[0].assert_sound().await, 120);
}
