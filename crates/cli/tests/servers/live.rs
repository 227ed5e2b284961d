//! Live counts across servers.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use crate::database::{On, insist, on, servers};
use crate::support::*;

/// Refuses a count that is below the one before of the same object.
fn rising() -> impl FnMut(&Value) {
    let mut counts = BTreeMap::new();
    move |event| {
        let count = event["count"].as_i64().unwrap();
        let last = counts.insert(event["object"].to_string(), count);
        assert!(Some(count) >= last, "{last:?}, then {event}");
    }
}

on!(a_like_on_one_server_is_told_on_the_other: postgres redis cluster);
async fn a_like_on_one_server_is_told_on_the_other(on: On) {
    let [a, b]: [Server; 2] = servers(&on.new_store(), "").await;
    b.client().like("post:1", "zoe").await;
    let mut events = Events::open(&a.client(), "objects=post:1&relations=like").await;
    events.until("post:1", 1, |_| {}).await;
    b.client().like("post:1", "alice").await;
    events.until("post:1", 2, rising()).await;
    b.client().unlike("post:1", "zoe").await;
    events.until("post:1", 1, |_| {}).await;
}

on!(counts_never_run_backwards_while_two_servers_write: postgres redis cluster);
async fn counts_never_run_backwards_while_two_servers_write(on: On) {
    const EACH: usize = 60;
    let [a, b]: [Server; 2] = servers(&on.new_store(), "").await;
    let mut streams = Vec::new();
    for server in [&a, &b] {
        streams.push(Events::open(&server.client(), "objects=post:1&relations=like").await);
    }
    let (left, right) = (a.client(), b.client());
    let likes = (0..EACH).flat_map(|n| {
        let (left, right) = (left.clone(), right.clone());
        [(left, format!("left-{n}")), (right, format!("right-{n}"))]
    });
    let likes = join_all(likes.map(|(client, who)| async move { client.like("post:1", &who).await }));
    let reading = join_all(streams.iter_mut().map(|stream| stream.until("post:1", 2 * EACH as i64, rising())));
    tokio::join!(likes, reading);
}

on!(live_counts_come_back_with_the_store: postgres redis cluster);
async fn live_counts_come_back_with_the_store(on: On) {
    let (store, url) = on.own();
    let [a, b]: [Server; 2] = servers(&url, "").await;
    let mut events = Events::open(&a.client(), "objects=post:1,post:2&relations=like").await;
    b.client().like("post:1", "alice").await;
    events.until("post:1", 1, |_| {}).await;
    let _store = store.struck().await;
    let like = |who: &str| {
        let path = edge("like", "post:1", who);
        let client = b.client();
        async move { insist("the store is back", || client.put(&path)).await }
    };
    like("bob").await;
    events.until("post:1", 2, rising()).await;
    like("carol").await;
    events.until("post:1", 3, rising()).await;
}
