//! Others who lock what is wanted: clear words, and recovery when they let go.

use std::sync::Arc;

use tally_core::command::{Batch, Command};
use tally_core::reply::Reply;
use tally_core::rows::{ListKey, Side};
use tally_engine::{Engine, Range};
use tokio::task::JoinSet;

use crate::support::{Outsider, Store, edge, relate, shared, unavailable, unique};

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_find_every_connection_busy_are_told_what_to_do() {
    let url = shared("&pool=2&timeout_ms=500");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    store.like("post:1", "alice").await.unwrap();
    outside.run("BEGIN; LOCK TABLE edge").await;
    let list = ListKey { side: Side::Object, id: "post:1".into(), relation: None, hidden: false };
    let mut readers = JoinSet::new();
    for _ in 0..40 {
        let (engine, list) = (store.engine.clone(), list.clone());
        readers.spawn(async move { engine.scan(&Range::List { list, after: None }, 10).await });
    }
    let answers = readers.join_all().await;
    let words: Vec<String> = answers
        .into_iter()
        .map(|answer| {
            let error = answer.unwrap_err();
            assert!(error.is_transient(), "{error}");
            error.to_string()
        })
        .collect();
    assert!(words.iter().any(|word| word.contains("raise `pool`")), "{words:?}");
    assert!(words.iter().any(|word| word.contains("locked")), "{words:?}");
    outside.run("ROLLBACK").await;
    let page = store.engine.scan(&Range::List { list, after: None }, 10).await.unwrap();
    assert_eq!(page.items.len(), 1);
    assert_eq!(store.like("post:1", "bob").await.unwrap().count, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_behind_a_lock_is_refused_in_time_and_not_done() {
    let url = shared("&timeout_ms=500");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    store.like("post:1", "alice").await.unwrap();
    outside.run("BEGIN; SELECT FROM object_total FOR UPDATE").await;
    let why = unavailable(store.like("post:1", "bob").await);
    assert!(why.contains("another session keeps what is wanted locked"), "{why}");
    outside.run("ROLLBACK").await;
    assert_eq!(store.assert_sound().await, 1);
    assert_eq!(store.like("post:1", "bob").await.unwrap().count, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_takes_too_long_is_given_up_and_not_done() {
    let url = shared("&timeout_ms=500");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    store.like("post:1", "alice").await.unwrap();
    outside
        .run(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM pg_sleep(30); RETURN NEW; END $$;
             CREATE TRIGGER slow BEFORE INSERT ON edge FOR EACH ROW EXECUTE FUNCTION slow()",
        )
        .await;
    assert!(!unavailable(store.like("post:1", "bob").await).is_empty());
    outside.run("DROP TRIGGER slow ON edge").await;
    assert_eq!(store.assert_sound().await, 1);
    assert_eq!(store.like("post:1", "bob").await.unwrap().count, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_with_a_foreign_transaction_is_survived() {
    let application = unique();
    let url = shared(&format!("&application_name={application}"));
    let store = Arc::new(Store::open(&url).await);
    let (outside, watching) = (Outsider::of(&url).await, Outsider::of(&url).await);
    for post in ["post:a", "post:b"] {
        store.like(post, "before").await.unwrap();
    }
    // It is the store's transaction that finds out, and ends.
    outside.run("SET deadlock_timeout = '10min'; BEGIN").await;
    outside.run("UPDATE object_total SET n = n WHERE object = 'post:b'").await;
    let calling = tokio::spawn({
        let store = store.clone();
        let commands = ["post:a", "post:b"].map(|post| relate("like", post, "alice")).to_vec();
        async move { store.apply(Command::from(Batch { atomic: true, commands })).await }
    });
    watching.until_waiting(&application, 1).await;
    outside.run("UPDATE object_total SET n = n WHERE object = 'post:a'; COMMIT").await;
    let Reply::Batch(replies) = calling.await.unwrap().unwrap() else { panic!("a batch is answered by a batch") };
    for reply in replies {
        let edge = edge(reply.unwrap());
        assert_eq!((edge.changed, edge.count), (true, 2));
    }
    assert_eq!(store.assert_sound().await, 4);
}
