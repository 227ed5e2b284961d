//! One edge: made, repeated, removed, toggled, read, and what each costs.

use crate::support::*;

#[tokio::test]
async fn a_like_answers_the_edge_as_it_is_now() {
    let server = Server::start("").await;
    let client = server.client();
    let like = client.like("post:42", "alice").await;
    let created_at = like["created_at"].as_str().unwrap().to_owned();
    let expected = json!({
        "relation": "like", "object": "post:42", "subject": "alice",
        "active": true, "changed": true, "count": 1, "created_at": created_at, "meta": null,
    });
    assert_eq!(like, expected);
    // RFC 3339, UTC, milliseconds.
    assert_eq!(created_at.len(), "2026-01-01T00:00:00.000Z".len(), "{created_at}");
    assert!(created_at.ends_with('Z') && created_at.as_bytes()[19] == b'.', "{created_at}");
}

#[tokio::test]
async fn a_repeated_like_changes_nothing_and_keeps_its_time() {
    let server = Server::start("").await;
    let client = server.client();
    let first = client.like("post:1", "alice").await;
    for _ in 0..3 {
        let again = client.like("post:1", "alice").await;
        assert_eq!(again["changed"], false);
        assert_eq!(again["active"], true);
        assert_eq!(again["count"], 1);
        assert_eq!(again["created_at"], first["created_at"]);
    }
}

#[tokio::test]
async fn an_unlike_takes_one_off_once() {
    let server = Server::start("").await;
    let client = server.client();
    client.like("post:1", "alice").await;
    client.like("post:1", "bob").await;
    let gone = client.unlike("post:1", "alice").await;
    let expected = json!({
        "relation": "like", "object": "post:1", "subject": "alice", "active": false, "changed": true, "count": 1,
    });
    assert_eq!(gone, expected);
    let again = client.unlike("post:1", "alice").await;
    assert_eq!((&again["changed"], &again["count"]), (&json!(false), &json!(1)));
    // What was never there does not go negative either.
    let never = client.unlike("post:2", "alice").await;
    assert_eq!((&never["changed"], &never["count"]), (&json!(false), &json!(0)));
}

#[tokio::test]
async fn relating_after_unrelating_is_a_new_edge_at_the_front_of_the_lists() {
    let server = Server::start("").await;
    let client = server.client();
    let first = client.like("post:1", "alice").await;
    client.like("post:1", "bob").await;
    client.unlike("post:1", "alice").await;
    let second = client.like("post:1", "alice").await;
    assert_eq!(second["changed"], true);
    assert!(second["created_at"].as_str() >= first["created_at"].as_str());
    assert_eq!(client.subjects("like", "post:1").await, ["alice", "bob"]);
}

#[tokio::test]
async fn toggle_flips_and_answers_like_put_or_delete() {
    let server = Server::start("").await;
    let client = server.client();
    let path = format!("{}/toggle", edge("like", "post:1", "alice"));
    let on = client.post(&path).ok().await;
    assert_eq!((&on["active"], &on["changed"], &on["count"]), (&json!(true), &json!(true), &json!(1)));
    assert!(on["created_at"].is_string() && on["meta"].is_null());
    let off = client.post(&path).ok().await;
    assert_eq!((&off["active"], &off["changed"], &off["count"]), (&json!(false), &json!(true), &json!(0)));
    assert!(off.get("created_at").is_none());
}

#[tokio::test]
async fn an_edge_reads_as_active_or_inactive_never_as_missing() {
    let server = Server::start("").await;
    let client = server.client();
    let path = edge("like", "post:1", "alice");
    assert_eq!(client.get(&path).ok().await, json!({"active": false}));
    let made = client.put(&path).json(&json!({"meta": {"from": "feed"}})).ok().await;
    let expected = json!({"active": true, "created_at": made["created_at"], "meta": {"from": "feed"}});
    assert_eq!(client.get(&path).ok().await, expected);
    client.delete(&path).ok().await;
    assert_eq!(client.get(&path).ok().await, json!({"active": false}));
}

#[tokio::test]
async fn costs_are_those_of_the_seeds_table() {
    let server = Server::start("").await;
    let client = server.client();
    let path = edge("like", "post:1", "alice");
    let toggle = format!("{path}/toggle");
    assert_eq!(client.put(&path).send().await.cost(), (2, 2), "a like that takes effect");
    assert_eq!(client.put(&path).send().await.cost(), (1, 0), "a repeated like");
    assert_eq!(client.delete(&path).send().await.cost(), (2, 2), "an unlike that takes effect");
    assert_eq!(client.delete(&path).send().await.cost(), (1, 0), "a repeated unlike");
    assert_eq!(client.post(&toggle).send().await.cost(), (2, 2), "a toggle");
    let commands = json!({"commands": [
        {"op": "relate", "relation": "like", "object": "post:2", "subject": "alice"},
        {"op": "relate", "relation": "like", "object": "post:2", "subject": "alice"},
        {"op": "unrelate", "relation": "like", "object": "post:2", "subject": "alice"},
    ]});
    assert_eq!(client.post("/v1/batch").json(&commands).send().await.cost(), (5, 4), "2+2, 1+0, 2+2");
}

#[tokio::test]
async fn every_answer_carries_a_request_id_and_keeps_the_clients_own() {
    let server = Server::start("").await;
    let client = server.client();
    let mut seen = std::collections::HashSet::new();
    for path in ["/healthz", "/v1/relations/like/post:1", "/nowhere", "/v1/relations/nope/post:1"] {
        let answer = client.get(path).send().await;
        assert!(seen.insert(answer.header("x-request-id").unwrap().to_owned()), "{path}");
    }
    let own = client.get("/healthz").header("x-request-id", "my-own-id-7").send().await;
    assert_eq!(own.header("x-request-id"), Some("my-own-id-7"));
    for bad in ["with space", &"x".repeat(65)] {
        let answer = client.get("/healthz").header("x-request-id", bad).send().await;
        assert_ne!(answer.header("x-request-id"), Some(bad));
    }
}
