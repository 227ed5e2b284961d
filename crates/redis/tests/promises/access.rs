//! What a Redis lacks is said when Tally starts, with what to do.

use tally_engine::{Engine, StoreError};
use tally_testing::redis::{Options, programs};
use tally_testing::{Cluster, Redis};

use crate::support::{Store, engine, shared, shared_cluster, until};

/// Why a store cannot be used until somebody does something.
async fn broken(url: &str) -> String {
    match engine(url).prepare().await {
        Err(StoreError::Broken(why)) => why,
        other => panic!("{other:?} is not a store that needs attention"),
    }
}

#[tokio::test]
async fn a_redis_that_throws_data_away_is_refused_unless_it_may() {
    let redis = Redis::start(Options::default()).unwrap();
    for policy in ["allkeys-lru", "volatile-ttl", "allkeys-random"] {
        redis.ask(&["CONFIG", "SET", "maxmemory-policy", policy]).unwrap();
        let why = broken(&redis.url()).await;
        assert!(why.contains(policy) && why.contains("noeviction") && why.contains("may_vanish=1"), "{why}");
        engine(&format!("{}?may_vanish=1", redis.url())).prepare().await.unwrap();
    }
    redis.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).unwrap();
    engine(&redis.url()).prepare().await.unwrap();
}

#[tokio::test]
async fn a_node_of_a_cluster_and_one_that_is_none_are_told_apart() {
    let cluster = Cluster::shared().unwrap();
    let node = cluster.split_once("://").unwrap().1.split(',').next().unwrap();
    let why = broken(&format!("redis://{node}")).await;
    assert!(why.contains("write redis+cluster://"), "{why}");
    let why = broken(&shared("").replace("redis://", "redis+cluster://")).await;
    assert!(why.contains("write redis://"), "{why}");
    engine(&shared_cluster("")).prepare().await.unwrap();
}

#[tokio::test]
async fn a_replica_is_refused() {
    let (master, replica) = (Redis::start(Options::default()).unwrap(), Redis::start(Options::default()).unwrap());
    let (host, port) = (master.address().ip().to_string(), master.port().to_string());
    replica.ask(&["REPLICAOF", &host, &port]).unwrap();
    let why = broken(&replica.url()).await;
    assert!(why.contains("is a replica") && why.contains("master"), "{why}");
    engine(&master.url()).prepare().await.unwrap();
}

#[tokio::test]
async fn a_newer_format_is_left_alone() {
    let redis = Redis::start(Options::default()).unwrap();
    engine(&redis.url()).prepare().await.unwrap();
    redis.ask(&["SET", "tally:sys:{sys}:format", "99"]).unwrap();
    let why = broken(&redis.url()).await;
    assert!(why.contains("format 99") && why.contains("newer release of Tally"), "{why}");
    assert_eq!(redis.ask(&["GET", "tally:sys:{sys}:format"]).unwrap(), "99");
    // Its keys have other names: opened all the same, it would seem to be empty.
    redis.ask(&["SET", "tally:sys:{sys}:format", "1"]).unwrap();
    let why = broken(&redis.url()).await;
    assert!(why.contains("format 1") && why.contains("another prefix"), "{why}");
}

#[tokio::test]
async fn waiting_for_the_log_needs_a_redis_that_can_and_a_log() {
    for program in programs() {
        let options = |appendonly| Options { appendonly, program: Some(program.clone()), ..Options::default() };
        let with_log = Redis::start(options(true)).unwrap();
        let about = with_log.ask(&["INFO", "server"]).unwrap();
        let is_old = about.contains("redis_version:7.0") && !about.contains("valkey_version");
        let url = format!("{}?wait_aof=1", with_log.url());
        if is_old {
            let why = broken(&url).await;
            assert!(why.contains("wait_aof needs Redis 7.2 or Valkey; this is Redis 7.0"), "{why}");
        } else {
            assert_eq!(Store::open(&url).await.like("post:1", "alice").await.unwrap().count, 1);
            let without = Redis::start(options(false)).unwrap();
            let why = broken(&format!("{}?wait_aof=1", without.url())).await;
            assert!(why.contains("append-only file"), "{why}");
        }
    }
}

#[tokio::test]
async fn a_wrong_password_is_named_and_not_told() {
    let redis = Redis::start(Options { password: Some("secret".into()), ..Options::default() }).unwrap();
    for url in [redis.url().replace("secret", "hush"), format!("redis://{}", redis.address())] {
        let error = engine(&url).prepare().await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains("password"), "{said}");
        assert!(!said.contains("hush") && !said.contains("secret"), "{said}");
    }
    let store = Store::open(&redis.url()).await;
    store.like("post:1", "alice").await.unwrap();
    // One that is changed while Tally runs is noticed with the next connection.
    redis.ask(&["CONFIG", "SET", "requirepass", "another"]).unwrap();
    let error = until("it is refused", async || {
        // Our own connection does not know it any more.
        let _ = engine(&redis.url().replace("secret", "another")).prepare().await;
        engine(&redis.url()).prepare().await.err()
    })
    .await;
    assert!(error.to_string().contains("password") && !error.to_string().contains("secret"), "{error}");
    assert_eq!(store.count("post:1").await.unwrap(), 1, "a connection that there is goes on");
}
