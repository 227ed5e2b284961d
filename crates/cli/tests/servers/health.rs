//! What a server says while its store is away, and that it comes back by itself.

use crate::database::{On, insist, on, verified};
use crate::support::*;

async fn is_away(client: &Client) {
    let ready = client.get("/readyz").problem(503, "store_unavailable").await;
    assert!(ready["detail"].as_str().unwrap().contains("the store"), "{ready}");
    assert_eq!(client.get("/healthz").ok().await, json!({"status": "ok"}), "the process lives");
    let write = client.put(&edge("like", "post:1", "bob")).send().await;
    write.problem(503, "store_unavailable");
    assert_eq!(write.header("retry-after"), Some("1"));
    let read = client.get("/v1/relations/like/post:1").send().await;
    read.problem(503, "store_unavailable");
    assert_eq!(read.header("retry-after"), Some("1"));
}

async fn is_back(client: &Client, who: &str) {
    until("it is ready again", async || (client.get("/readyz").send().await.status == 200).then_some(())).await;
    let like = insist("writes are taken again", || client.put(&edge("like", "post:1", who))).await;
    assert_eq!(like["active"], true);
    assert!(client.subjects("like", "post:1").await.contains(&who.to_owned()));
    verified(client).await;
}

on!(a_server_waits_for_a_stopped_store: postgres redis);
async fn a_server_waits_for_a_stopped_store(on: On) {
    let (mut store, url) = on.own();
    let server = Server::start_on(&url, "").await;
    let client = server.client();
    client.like("post:1", "alice").await;
    for round in 0..2 {
        if round == 0 {
            store.stop()
        } else {
            store.kill()
        };
        is_away(&client).await;
        store.start_again();
        is_back(&client, &format!("after-{round}")).await;
    }
    assert!(client.subjects("like", "post:1").await.contains(&"alice".to_owned()));
}

on!(a_server_does_not_hang_with_a_paused_store: postgres redis);
async fn a_server_does_not_hang_with_a_paused_store(on: On) {
    let (store, url) = on.own();
    let server = Server::start_on(&url, "").await;
    let client = server.client();
    client.like("post:1", "alice").await;
    store.pause();
    is_away(&client).await;
    store.resume();
    is_back(&client, "carol").await;
}
