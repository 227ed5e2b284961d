//! A Cluster that loses a master under load.

use std::time::{Duration, Instant};

use tally_engine::{Engine, Finding};
use tally_testing::redis::Options;
use tally_testing::{Cluster, ClusterOptions};

use crate::support::{Store, blocking, count, unavailable, until};
use tally_conformance::network::{POSTS, wrong};

/// The node that has the likes of a post.
fn master_of(cluster: &Cluster, post: &str) -> usize {
    cluster.master_of_slot(cluster.slot_of(&format!("tally:o:{{{post}}}:like")).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_is_killed_takes_nothing_along_that_its_replica_was_waited_for() {
    survives_the_death_of_masters(ClusterOptions::default()).await;
}

async fn survives_the_death_of_masters(options: ClusterOptions) {
    let mut cluster = blocking(|| Cluster::start(options)).unwrap();
    let store = Store::open(&format!("{}?wait_replicas=1&timeout_ms=1000", cluster.url())).await;
    let hands = store.hands();
    hands.until_answered(100).await;
    for round in 0..2 {
        let master = blocking(|| master_of(&cluster, "post:0"));
        blocking(|| cluster.kill(master)).unwrap();
        hands.until_failed().await;
        blocking(|| cluster.wait_for_failover(master)).unwrap();
        blocking(|| cluster.start_again(master)).unwrap();
        blocking(|| cluster.wait_until_healthy()).unwrap();
        hands.until_answered(100).await;
        println!("round {round}: {} calls failed so far", hands.failed());
    }
    store.check(hands).await;
    until("it is well again", async || store.engine.ping().await.ok()).await;
}

/// Without waiting for replicas, a master that dies takes along what its replica did not have yet: answered
/// writes of the last moments. A like is on two masters, so one side of it may be left: the audit names each.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_master_takes_along_is_of_the_last_moments_and_the_audit_names_what_is_torn() {
    let mut cluster = blocking(|| Cluster::start(ClusterOptions::default())).unwrap();
    let store = Store::open(&format!("{}?timeout_ms=1000", cluster.url())).await;
    let hands = store.hands();
    hands.until_answered(200).await;
    let master = blocking(|| master_of(&cluster, "post:0"));
    let before = Instant::now();
    blocking(|| cluster.kill(master)).unwrap();
    blocking(|| cluster.wait_for_failover(master)).unwrap();
    hands.until_answered(100).await;
    let lost = wrong(&*store.engine, hands.end().await).await;
    let (found, edges) = store.findings().await;
    println!("{} answers lost, {} findings, {edges} edges", lost.len(), found.len());
    for (edge, since) in &lost {
        let age = before.saturating_duration_since(*since);
        // A replica on the same machine is behind by moments; on a machine that is busy, by some more.
        assert!(age < Duration::from_secs(5), "{edge:?} was lost though it was answered {age:?} before");
    }
    for finding in &found {
        assert!(
            matches!(finding, Finding::Stray { .. }),
            "a count is the length of its list, so it cannot drift: {finding:?}"
        );
    }
    // What is torn is mended by doing it again, whichever side is left.
    for turn in 0..2 {
        for post in POSTS {
            for hand in 0..8 {
                let command = crate::support::toggle(post, &format!("hand-{hand}"));
                store.apply(command).await.unwrap_or_else(|error| panic!("turn {turn}: {error}"));
            }
        }
    }
    store.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_at_once_lose_nothing_when_every_write_is_synced() {
    let options = ClusterOptions { node: Options::durable(), ..ClusterOptions::default() };
    let mut cluster = blocking(|| Cluster::start(options)).unwrap();
    let store = Store::open(&format!("{}?timeout_ms=1000", cluster.url())).await;
    let hands = store.hands();
    hands.until_answered(100).await;
    for _ in 0..2 {
        blocking(|| {
            (0..6).for_each(|node| cluster.kill(node).unwrap());
            (0..6).for_each(|node| cluster.start_again(node).unwrap());
            cluster.wait_until_healthy().unwrap();
        });
        hands.until_answered(100).await;
    }
    store.check(hands).await;
}

/// A commit that is sent again finds that it was done. It must not be answered before the replica has it; from 7.2 on
/// waiting for replicas ends at once where nothing was written.
async fn refuses_without_its_replica(options: Options) {
    // None is taken for dead: one that stands still is still followed, and has what it had.
    let options = ClusterOptions { node: options, node_timeout_ms: 30_000, ..ClusterOptions::default() };
    let cluster = blocking(|| Cluster::start(options)).unwrap();
    let store = Store::open(&format!("{}?wait_replicas=1&timeout_ms=400", cluster.url())).await;
    until("writes are taken", async || store.like("post:1", "before").await.ok()).await;
    until("it is counted", async || store.apply(count("post:1", 1)).await.ok()).await;
    // Likes go over two slots: of the post, which decides, and of who likes, which waits for that. A counter is one slot.
    let master = blocking(|| master_of(&cluster, "post:1"));
    let replica = blocking(|| cluster.replica_of(master)).unwrap();
    blocking(|| cluster.pause(replica)).unwrap();
    let mut words = Vec::new();
    for fan in 0..6 {
        words.push(unavailable(store.like("post:1", &format!("fan-{fan}")).await));
        // It may be there; whoever is told so could lose it.
        words.push(unavailable(store.like("post:1", &format!("fan-{fan}")).await));
        words.push(unavailable(store.apply(count("post:1", 1)).await));
    }
    assert!(words.iter().any(|why| why.contains("replicas")), "{words:?}");
    blocking(|| cluster.go_on(replica)).unwrap();
    blocking(|| cluster.wait_until_healthy()).unwrap();
    until("writes are taken again", async || store.like("post:1", "after").await.ok()).await;
    let edges = store.assert_sound().await;
    assert!(edges >= 2, "{edges}");
    for fan in 0..6 {
        assert!(store.like("post:1", &format!("fan-{fan}")).await.unwrap().active);
    }
    assert_eq!(store.assert_sound().await, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_a_replica_to_wait_for_refuses_and_tears_nothing() {
    refuses_without_its_replica(Options::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_valkeys_without_a_replica_to_wait_for_refuses_too() {
    let program = Some(tally_testing::redis::valkey().unwrap());
    refuses_without_its_replica(Options { program, ..Options::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn valkeys_that_take_over_have_what_was_answered() {
    let node = Options { program: Some(tally_testing::redis::valkey().unwrap()), ..Options::default() };
    survives_the_death_of_masters(ClusterOptions { node, ..ClusterOptions::default() }).await;
}
