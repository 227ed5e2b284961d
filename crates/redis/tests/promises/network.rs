//! A network that fails: nothing answered is lost, nothing is done twice, and it goes on by itself.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tally_engine::Engine;
use tally_testing::{Cut, Direction, Proxy};

use crate::ledger::Hands;
use crate::support::{Store, engine, shared, unavailable, until};

/// A place on the shared instance that is reached through a proxy, and the same without it.
pub(crate) fn proxied(more: &str) -> (Proxy, String, String) {
    let direct = shared(more);
    let (front, back) = direct.split_once("://").unwrap();
    let (address, query) = back.split_once('?').unwrap();
    let proxy = Proxy::start(address.parse().unwrap()).unwrap();
    let through = format!("{front}://{}?{query}", proxy.address());
    (proxy, through, direct)
}

pub(crate) fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|part| part == word.as_bytes())
}

/// Says yes once.
pub(crate) fn once(
    matches: impl Fn(Direction, &[u8]) -> bool + Send + Sync,
) -> impl Fn(Direction, &[u8]) -> bool + Send + Sync {
    let done = AtomicBool::new(false);
    move |direction, bytes| matches(direction, bytes) && !done.swap(true, Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_failing_under_load_is_survived() {
    let (proxy, url, _) = proxied("&timeout_ms=400");
    let store = Store::open(&url).await;
    let hands = Hands::on(&store);
    hands.until_answered(50).await;
    for _ in 0..2 {
        proxy.cut();
        hands.until_failed().await;
        proxy.pass();
        hands.until_answered(50).await;
    }
    proxy.drop_answers();
    hands.until_failed().await;
    proxy.pass();
    hands.until_answered(50).await;
    for (cut, side) in [
        (Cut::Before, Direction::Request),
        (Cut::After, Direction::Request),
        (Cut::Before, Direction::Answer),
        (Cut::After, Direction::Answer),
    ] {
        let seen = AtomicUsize::new(0);
        // Every third message, whatever is in it.
        proxy.cut_when(cut, move |direction, _| {
            direction == side && seen.fetch_add(1, Ordering::SeqCst).is_multiple_of(3)
        });
        hands.until_answered(50).await;
        proxy.pass();
        hands.until_answered(50).await;
    }
    proxy.delay(std::time::Duration::from_millis(20));
    hands.until_answered(50).await;
    proxy.pass();
    hands.check(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_said_to_be_one_and_ends() {
    let (proxy, url, _) = proxied("&timeout_ms=400");
    let store = Store::open(&url).await;
    store.like("post:1", "before").await.unwrap();
    let hands = Hands::on(&store);
    hands.until_answered(20).await;
    proxy.hang();
    hands.until_failed().await;
    let why = unavailable(store.like("post:1", "alice").await);
    assert!(why.contains("Redis"), "{why}");
    let why = store.count("post:1").await.unwrap_err();
    assert!(why.is_transient(), "{why}");
    assert!(store.engine.ping().await.unwrap_err().is_transient());
    proxy.pass();
    hands.until_answered(50).await;
    hands.check(&store).await;
    assert!(!store.like("post:1", "before").await.unwrap().changed, "what was answered is there");
    until("it is well again", async || store.engine.ping().await.ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_not_there_is_unavailable_and_no_secret_is_told() {
    let proxy = Proxy::start("127.0.0.1:1".parse().unwrap()).unwrap();
    proxy.cut();
    for scheme in ["redis", "redis+cluster"] {
        let url = format!("{scheme}://app:hush@{}?timeout_ms=400", proxy.address());
        let error = engine(&url).prepare().await.unwrap_err();
        assert!(error.is_transient() && error.to_string().contains("refused"), "{scheme}: {error}");
        assert!(!format!("{error:?}{:?}", engine(&url).options()).contains("hush"), "{error:?}");
    }
}
