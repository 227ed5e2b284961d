//! A Redis that refuses: clear words, nothing half done, and it goes on by itself afterwards.

use std::net::TcpStream;

use tally_core::command::{Command, Relate};
use tally_core::relation;
use tally_engine::{Engine, Failure, StoreError};
use tally_testing::Redis;
use tally_testing::redis::Options;

use crate::support::{Store, blocking, edge, relate, unavailable, unrelate, until};

async fn on(redis: &Redis) -> Store {
    let store = Store::open(&format!("{}?timeout_ms=2000", redis.url())).await;
    assert_eq!(store.like("post:1", "before").await.unwrap().count, 1);
    store
}

/// Takes writes again, and nothing of what was refused is there.
async fn assert_well(store: &Store) {
    until("writes are taken again", async || store.like("post:1", "after").await.ok()).await;
    until("it is well", async || store.engine.ping().await.ok()).await;
    assert_eq!(store.count("post:1").await.unwrap(), 2);
    assert_eq!(store.assert_sound().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_redis_forgot_are_sent_again() {
    let redis = Redis::start(Options::default()).unwrap();
    let store = on(&redis).await;
    let hands = store.hands();
    for _ in 0..20 {
        redis.ask(&["SCRIPT", "FLUSH", "SYNC"]).unwrap();
        hands.until_answered(20).await;
    }
    assert_eq!(hands.failed(), 0, "nobody noticed");
    store.check(hands).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_loads_its_data_is_unavailable_until_it_is_done() {
    let options = Options::default().with("enable-debug-command", "yes").with("key-load-delay", "2000");
    let redis = Redis::start(options.with("loading-process-events-interval-bytes", "1024")).unwrap();
    let store = on(&redis).await;
    redis.ask(&["EVAL", "for n = 1, 1000 do redis.call('SET', 'filler:' .. n, ('x'):rep(100)) end", "0"]).unwrap();
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| redis.ask(&["DEBUG", "RELOAD"]));
        blocking(|| {
            tokio::runtime::Handle::current().block_on(async {
                let why = until("it says that it loads", async || {
                    store.like("post:1", "alice").await.err().map(|error| unavailable(Err::<(), _>(error)))
                })
                .await;
                assert!(why.contains("loading its data"), "{why}");
                let why = store.count("post:1").await.unwrap_err();
                assert!(why.is_transient() && why.to_string().contains("loading"), "{why}");
            });
        });
        loading.join().unwrap().unwrap();
    });
    store.apply(unrelate("like", "post:1", "alice")).await.unwrap();
    assert_well(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_without_memory_takes_no_likes_and_goes_on_reading() {
    let redis = Redis::start(Options::default()).unwrap();
    let store = on(&redis).await;
    store.like("post:1", "carol").await.unwrap();
    redis.ask(&["CONFIG", "SET", "maxmemory", "1mb"]).unwrap();
    let why = unavailable(store.like("post:1", "alice").await);
    assert!(why.contains("no memory left (maxmemory)"), "{why}");
    assert!(store.engine.ping().await.unwrap_err().is_transient());
    assert_eq!(store.count("post:1").await.unwrap(), 2, "reads go on");
    // What makes room is taken.
    store.apply(unrelate("like", "post:1", "carol")).await.unwrap();
    assert_eq!(store.count("post:1").await.unwrap(), 1);
    redis.ask(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    assert_well(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_was_made_a_replica_takes_no_writes_until_it_is_a_master_again() {
    let (redis, master) = (Redis::start(Options::default()).unwrap(), Redis::start(Options::default()).unwrap());
    let store = on(&redis).await;
    // It follows somebody who has the same, so that reads go on.
    let follow = |whom: &Redis, who: &Redis| {
        let (host, port) = (whom.address().ip().to_string(), whom.port().to_string());
        who.ask(&["REPLICAOF", &host, &port]).unwrap();
    };
    let in_sync = async |who: &Redis| {
        let is_up = async || who.ask(&["INFO", "replication"]).unwrap().contains("master_link_status:up").then_some(());
        until("it follows", is_up).await;
    };
    follow(&redis, &master);
    in_sync(&master).await;
    master.ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    follow(&master, &redis);
    in_sync(&redis).await;
    let why = unavailable(store.like("post:1", "alice").await);
    assert!(why.contains("read-only replica"), "{why}");
    assert!(store.engine.ping().await.unwrap_err().is_transient());
    assert_eq!(store.count("post:1").await.unwrap(), 1, "reads go on");
    redis.ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    assert_well(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_busy_with_the_script_of_somebody_else_is_unavailable_until_that_ends() {
    let redis = Redis::start(Options::default().with("busy-reply-threshold", "20")).unwrap();
    let store = on(&redis).await;
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| redis.ask(&["EVAL", "while true do end", "0"]));
        blocking(|| {
            tokio::runtime::Handle::current().block_on(async {
                let why = until("it says that it is busy", async || {
                    store.like("post:1", "after").await.err().map(|error| unavailable(Err::<(), _>(error)))
                })
                .await;
                assert!(why.contains("busy with a script"), "{why}");
                assert!(store.engine.ping().await.unwrap_err().is_transient());
            });
        });
        redis.ask(&["SCRIPT", "KILL"]).unwrap();
        assert!(busy.join().unwrap().is_err());
    });
    assert_well(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_cannot_save_takes_no_writes_and_says_so() {
    let redis =
        Redis::start(Options::default().with("stop-writes-on-bgsave-error", "yes").with("save", "3600 1000000"))
            .unwrap();
    let store = on(&redis).await;
    let folder = std::path::PathBuf::from(redis.ask(&["CONFIG", "GET", "dir"]).unwrap().lines().nth(1).unwrap());
    // A folder in the place of the file that it saves to.
    std::fs::create_dir_all(folder.join("dump.rdb/in-the-way")).unwrap();
    redis.ask(&["BGSAVE"]).unwrap();
    let failed =
        async || redis.ask(&["INFO", "persistence"]).unwrap().contains("rdb_last_bgsave_status:err").then_some(());
    until("a snapshot fails", failed).await;
    let why = unavailable(store.like("post:1", "alice").await);
    assert!(why.contains("cannot save to its disk"), "{why}");
    assert_eq!(store.count("post:1").await.unwrap(), 1, "reads go on");
    std::fs::remove_dir_all(folder.join("dump.rdb")).unwrap();
    redis.ask(&["SAVE"]).unwrap();
    assert_well(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_misses_replicas_takes_no_writes_and_says_so() {
    let redis = Redis::start(Options::default()).unwrap();
    let store = on(&redis).await;
    redis.ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]).unwrap();
    let why = unavailable(store.like("post:1", "alice").await);
    assert!(why.contains("NOREPLICAS"), "{why}");
    assert_eq!(store.count("post:1").await.unwrap(), 1, "reads go on");
    redis.ask(&["CONFIG", "SET", "min-replicas-to-write", "0"]).unwrap();
    assert_well(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_somebody_else_is_named_and_nothing_is_half_done() {
    let redis = Redis::start(Options::default()).unwrap();
    let store = on(&redis).await;
    let index = redis.ask(&["KEYS", "tally:i:*"]).unwrap();
    // Every like touches the first of these; the others may be left out by some.
    let foreign = [
        (true, "tally:o:{post:9}:like", "post:9"),
        (true, "tally:s:{alice}:like", "post:9"),
        (true, "tally:s:{alice}:like", "post:1"),
        (true, "tally:sys:{sys}:stamp", "post:1"),
        (false, "tally:o:{post:9}:like:hidden", "post:9"),
        (false, "tally:o:{post:9}:like:data", "post:9"),
        (false, "tally:o:{post:1}:.off", "post:1"),
        (false, &index, "post:1"),
        (false, &index, "post:9"),
    ];
    // With something attached, a like goes another way.
    let meta = serde_json::json!({"from": "a test"}).as_object().cloned().map(std::sync::Arc::new);
    for ((always, key, to), meta) in foreign.iter().flat_map(|case| [(case, None), (case, meta.clone())]) {
        let like = match relate("like", to, "alice") {
            Command::Relation(relation::Command::Relate(Relate { relation, object, subject, kind, .. })) => {
                Command::from(Relate { relation, object, subject, kind, meta })
            }
            other => other,
        };
        // What is there already is put aside.
        let kept = redis.ask(&["EXISTS", key]).unwrap() == "1";
        if kept {
            redis.ask(&["RENAME", key, "aside"]).unwrap();
        }
        redis.ask(&["RPUSH", key, "theirs"]).unwrap();
        let liked = match store.apply(like).await.map(edge) {
            Err(Failure::Store(StoreError::Broken(why))) => {
                assert!(why.contains("Tally did not write"), "{key}: {why}");
                false
            }
            Ok(edge) => {
                assert!(!always && edge.changed, "{key}: {edge:?}");
                true
            }
            other => panic!("{key}: {other:?}"),
        };
        assert_eq!(redis.ask(&["LRANGE", key, "0", "-1"]).unwrap(), "theirs", "it is left alone");
        redis.ask(&["DEL", key]).unwrap();
        if kept {
            redis.ask(&["RENAME", "aside", key]).unwrap();
        }
        if liked {
            store.apply(unrelate("like", to, "alice")).await.unwrap();
        }
        assert_eq!(store.assert_sound().await, 1, "{key}");
        assert_eq!(redis.ask(&["KEYS", "tally:s:{alice}*"]).unwrap(), "", "{key}: nothing is half done");
    }
    assert_well(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_takes_no_more_connections_is_unavailable_until_it_does() {
    let redis = Redis::start(Options::default().with("maxclients", "4")).unwrap();
    let taken: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(redis.address()).unwrap()).collect();
    let url = format!("{}?timeout_ms=400", redis.url());
    let error = until("it is refused", async || crate::support::engine(&url).prepare().await.err()).await;
    assert!(error.is_transient(), "{error}");
    drop(taken);
    let store = until("it is taken", async || {
        crate::support::engine(&url).prepare().await.ok()?;
        Some(Store::open(&url).await)
    })
    .await;
    assert_eq!(store.like("post:1", "alice").await.unwrap().count, 1);
}
