//! Live counts across servers.

use futures_util::future::join_all;

use crate::database::{insist, new_schema, own_postgres, restarted, servers};
use crate::support::*;

/// Refuses a count that is below the one before.
fn rising() -> impl FnMut(&Value) {
    let mut last = 0;
    move |event| {
        let count = event["count"].as_i64().unwrap();
        assert!(count >= last, "{last}, then {event}");
        last = count;
    }
}

#[tokio::test]
async fn a_like_on_one_server_is_told_on_the_other() {
    let [a, b]: [Server; 2] = servers(&new_schema(), "").await;
    b.client().like("post:1", "zoe").await;
    let mut events = Events::open(&a.client(), "objects=post:1&relations=like").await;
    events.until("post:1", 1, |_| {}).await;
    b.client().like("post:1", "alice").await;
    events.until("post:1", 2, rising()).await;
    b.client().unlike("post:1", "zoe").await;
    events.until("post:1", 1, |_| {}).await;
}

#[tokio::test]
async fn counts_never_run_backwards_while_two_servers_write() {
    const EACH: usize = 60;
    let [a, b]: [Server; 2] = servers(&new_schema(), "").await;
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

#[tokio::test]
async fn live_counts_come_back_with_postgresql() {
    let (postgres, url) = own_postgres();
    let [a, b]: [Server; 2] = servers(&url, "").await;
    let mut events = Events::open(&a.client(), "objects=post:1,post:2&relations=like").await;
    b.client().like("post:1", "alice").await;
    events.until("post:1", 1, |_| {}).await;
    let _postgres = restarted(postgres).await;
    let like = |who: &str| {
        let path = edge("like", "post:1", who);
        let client = b.client();
        async move { insist("PostgreSQL is back", || client.put(&path)).await }
    };
    like("bob").await;
    events.until("post:1", 2, rising()).await;
    like("carol").await;
    events.until("post:1", 3, rising()).await;
}
