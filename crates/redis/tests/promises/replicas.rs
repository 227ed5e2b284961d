//! Writes that wait for replicas: what was answered is there too.

use tally_core::view::Wants;
use tally_engine::Engine;
use tally_testing::Redis;
use tally_testing::redis::Options;

use crate::support::{Store, blocking, unavailable, until};
use tally_conformance::network::wrong;

fn follow(replica: &Redis, master: &Redis) {
    let (host, port) = (master.address().ip().to_string(), master.port().to_string());
    replica.ask(&["REPLICAOF", &host, &port]).unwrap();
}

/// Waits until it follows in the eyes of the other.
async fn in_sync(master: &Redis) {
    let is_online = async || master.ask(&["INFO", "replication"]).unwrap().contains("state=online").then_some(());
    until("it follows", is_online).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_on_the_replica() {
    let (mut master, replica) = (Redis::start(Options::default()).unwrap(), Redis::start(Options::default()).unwrap());
    follow(&replica, &master);
    in_sync(&master).await;
    let store = Store::open(&format!("{}?wait_replicas=1&timeout_ms=400", master.url())).await;
    let hands = store.hands();
    hands.until_answered(200).await;
    blocking(|| master.kill()).unwrap();
    hands.until_failed().await;
    let known = hands.end().await;
    replica.ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    let taken_over = Store::open(&replica.url()).await;
    assert_eq!(wrong(&*taken_over.engine, known).await, []);
    taken_over.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_replica_writes_are_refused_in_time() {
    let (master, mut replica) = (Redis::start(Options::default()).unwrap(), Redis::start(Options::default()).unwrap());
    follow(&replica, &master);
    in_sync(&master).await;
    let store = Store::open(&format!("{}?wait_replicas=1&timeout_ms=2000", master.url())).await;
    // A new replica takes a moment until it says what it has.
    until("writes are taken", async || store.like("post:1", "before").await.ok()).await;
    for fan in ["alice", "bob"] {
        blocking(|| replica.kill()).unwrap();
        let why = unavailable(store.like("post:1", fan).await);
        assert!(why.contains("replicas"), "{why}");
        // It is there, and whoever is told so could lose it: neither the one who asks again nor a reader is.
        let why = unavailable(store.like("post:1", fan).await);
        assert!(why.contains("replicas"), "{why}");
        let loaded = store.engine.load(&Wants::default()).await.unwrap();
        assert!(store.engine.settle(loaded.mark).await.is_err(), "what is shown waits");
        assert!(store.engine.ping().await.is_err(), "a server that can answer nobody is not ready");
        blocking(|| replica.start_again()).unwrap();
        follow(&replica, &master);
        in_sync(&master).await;
        let edge = until("writes are taken again", async || store.like("post:1", fan).await.ok()).await;
        assert!(edge.active);
    }
    assert_eq!(store.assert_sound().await, 3);
}
