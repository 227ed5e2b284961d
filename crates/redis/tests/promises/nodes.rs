//! A Cluster whose slots move and whose nodes stand still.

use tally_engine::Engine;
use tally_testing::redis::cluster::Role;
use tally_testing::{Cluster, ClusterOptions};

use crate::support::{Store, blocking, until};
use tally_conformance::network::POSTS;

/// One that takes nobody for dead.
fn patient() -> Cluster {
    Cluster::start(ClusterOptions { node_timeout_ms: 30_000, ..ClusterOptions::default() }).unwrap()
}

async fn moves_under_load(cluster: &Cluster, more: &str) {
    let store = Store::open(&format!("{}?timeout_ms=2000{more}", cluster.url())).await;
    let hands = store.hands();
    hands.until_answered(100).await;
    for key in ["tally:object:{post:0}", "tally:s:{hand-1}", "tally:sys:{sys}"] {
        let slot = cluster.slot_of(key).unwrap();
        let from = cluster.master_of_slot(slot).unwrap();
        blocking(|| cluster.begin_move(slot, (from + 1) % 3)).unwrap();
        hands.until_answered(10).await;
        // Redis refuses a script while some of its keys are here, some there and some nowhere, so calls about
        // this slot are refused for as long as that lasts.
        while blocking(|| cluster.move_keys(slot, 40)).unwrap() > 0 {
            hands.until_told(4).await;
        }
        // Keys that were made meanwhile.
        let end = async || {
            blocking(|| {
                while cluster.move_keys(slot, 100).is_ok_and(|moved| moved > 0) {}
                cluster.end_move(slot).ok()
            })
        };
        until("the slot has moved", end).await;
        let before = hands.failed();
        hands.until_answered(200).await;
        println!("{key}: {before} calls failed until its slot had moved, {} afterwards", hands.failed() - before);
        assert_eq!(cluster.master_of_slot(slot).unwrap(), (from + 1) % 3);
    }
    let failed = until("errors end", async || {
        let before = hands.failed();
        hands.until_answered(300).await;
        (hands.failed() == before).then_some(before)
    })
    .await;
    println!("{failed} calls failed in all");
    store.check(hands).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_move_under_load_lose_nothing() {
    let cluster = blocking(patient);
    moves_under_load(&cluster, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_move_while_replicas_are_waited_for_lose_nothing() {
    let cluster = blocking(patient);
    moves_under_load(&cluster, "&wait_replicas=1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stands_still_is_unavailable_until_it_goes_on() {
    let cluster = blocking(patient);
    let store = Store::open(&format!("{}?timeout_ms=400", cluster.url())).await;
    let hands = store.hands();
    hands.until_answered(100).await;
    for node in 0..3 {
        blocking(|| cluster.pause(node)).unwrap();
        hands.until_failed().await;
        cluster.go_on(node).unwrap();
        hands.until_answered(100).await;
    }
    assert!(cluster.nodes()[..3].iter().all(|node| node.role().unwrap() == Role::Master), "nobody took over");
    store.check(hands).await;
    until("it is well again", async || store.engine.ping().await.ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_memory_takes_no_likes_and_nothing_is_torn() {
    let cluster = blocking(patient);
    let store = Store::open(&format!("{}?timeout_ms=1000", cluster.url())).await;
    let hands = store.hands();
    hands.until_answered(100).await;
    for node in 0..3 {
        cluster.node(node).ask(&["CONFIG", "SET", "maxmemory", "1mb"]).unwrap();
        hands.until_failed().await;
        for post in POSTS {
            store.count(post).await.unwrap();
        }
        cluster.node(node).ask(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
        hands.until_answered(50).await;
    }
    store.check(hands).await;
}
