//! A live stream ends with the credential that opened it.

use crate::support::*;

const QUERY: &str = "objects=post:1&relations=like";

#[tokio::test]
async fn a_stream_ends_when_its_key_is_revoked_and_tells_nothing_after() {
    let server = Server::start("").await;
    let admin = server.client();
    let made = admin.post("/v1/keys").json(&json!({"role": "read"})).status(201).await;
    let mut events = Events::open(&server.client_as(made["key"].as_str()), QUERY).await;
    let mut own = Events::open(&admin, QUERY).await;
    assert_eq!(events.next().await.unwrap()["count"], 0);
    admin.delete(&format!("/v1/keys/{}", made["id"].as_str().unwrap())).ok().await;
    admin.like("post:1", "alice").await;
    assert_eq!(events.ended().await, [] as [Value; 0], "not even the change that came right after");
    own.until("post:1", 1, |_| {}).await;
}

#[tokio::test]
async fn a_stream_ends_when_its_token_expires() {
    let issuer = tokens::Issuer::new();
    let server = Server::start(&issuer.config()).await;
    let short = tokens::user_with("alice", json!({"exp": tokens::now_s() + 3}));
    let mut events = Events::open(&server.client_as(Some(&short)), QUERY).await;
    let mut lasting = Events::open(&server.client_as(Some(&tokens::user("bob"))), QUERY).await;
    assert_eq!(events.next().await.unwrap()["count"], 0);
    assert_eq!(events.ended().await, [] as [Value; 0]);
    server.client().like("post:1", "alice").await;
    lasting.until("post:1", 1, |_| {}).await;
}

#[tokio::test]
async fn a_stream_ends_when_the_issuer_takes_its_key_away() {
    let issuer = tokens::Issuer::new();
    let server = Server::start(&issuer.config()).await;
    let mut events = Events::open(&server.client_as(Some(&tokens::user("alice"))), QUERY).await;
    assert_eq!(events.next().await.unwrap()["count"], 0);
    issuer.withdraw("ed");
    assert_eq!(events.ended().await, [] as [Value; 0]);
}
