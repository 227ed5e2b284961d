//! A database that goes away and comes back under load.

use tally_conformance::network::Hands;
use tally_engine::Engine;
use tally_testing::Postgres;

use crate::support::{Store, until, with_schema};

async fn under_load(postgres: &Postgres) -> (Store, Hands) {
    let store = Store::open(&with_schema(&postgres.url(), "&timeout_ms=500")).await;
    let hands = store.hands();
    hands.until_answered(100).await;
    (store, hands)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_under_load_loses_nothing() {
    let mut postgres = Postgres::start(Default::default()).unwrap();
    let (store, hands) = under_load(&postgres).await;
    for _ in 0..3 {
        postgres.restart().unwrap();
        hands.until_answered(100).await;
    }
    store.check(hands).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_under_load_loses_nothing_that_was_answered() {
    let mut postgres = Postgres::start(Default::default()).unwrap();
    let (store, hands) = under_load(&postgres).await;
    for _ in 0..3 {
        postgres.kill().unwrap();
        hands.until_failed().await;
        assert!(store.engine.ping().await.unwrap_err().is_transient());
        postgres.start_again().unwrap();
        hands.until_answered(100).await;
    }
    store.check(hands).await;
    until("it is well again", async || store.engine.ping().await.ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_stands_still_is_unavailable_until_it_goes_on() {
    let postgres = Postgres::start(Default::default()).unwrap();
    let (store, hands) = under_load(&postgres).await;
    for _ in 0..2 {
        postgres.pause().unwrap();
        hands.until_failed().await;
        assert!(store.count("post:1").await.unwrap_err().is_transient());
        postgres.resume().unwrap();
        hands.until_answered(100).await;
    }
    store.check(hands).await;
}
