//! Unique counts: how many different ones?

use crate::support::*;

async fn add(client: &Client, key: &str, members: &[String]) -> Value {
    client.post(&format!("/v1/uniques/dau/{}", encode(key))).json(&json!({"members": members})).ok().await
}

fn users(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|n| format!("user-{n}")).collect()
}

#[tokio::test]
async fn whoever_is_seen_again_counts_once() {
    let server = Server::start("").await;
    let client = server.client();
    let first = add(&client, "monday", &users(0, 3)).await;
    assert_eq!(first, json!({"unique": "dau", "key": "monday", "changed": true, "estimate": 3}));
    let again = add(&client, "monday", &users(1, 3)).await;
    assert_eq!((&again["changed"], &again["estimate"]), (&json!(false), &json!(3)));
    let answer = client.post("/v1/uniques/dau/monday").json(&json!({"members": ["user-1"]})).send().await;
    assert_eq!(answer.cost(), (1, 0));
    let read = client.get("/v1/uniques/dau/monday").ok().await;
    assert_eq!(read["estimate"], 3);
    assert!(read["error"].as_f64().is_some_and(|error| error > 0.0 && error <= 0.0081), "{read}");
    assert_eq!(client.get("/v1/uniques/dau/never").ok().await["estimate"], 0);
}

#[tokio::test]
async fn a_union_counts_each_once_and_leaves_the_keys_alone() {
    let server = Server::start("").await;
    let client = server.client();
    add(&client, "mon", &users(0, 10)).await;
    add(&client, "tue", &users(5, 15)).await;
    add(&client, "a,b", &users(100, 101)).await;
    let union = async |keys: &str| client.get(&format!("/v1/uniques/dau?keys={keys}")).ok().await["estimate"].clone();
    assert_eq!(union("mon,tue").await, 15);
    assert_eq!(union("mon,tue,never").await, 15);
    assert_eq!(union("mon").await, 10);
    assert_eq!(union("a%2Cb,mon").await, 11);
    assert_eq!(client.get("/v1/uniques/dau/mon").ok().await["estimate"], 10);
    for query in ["", "?keys=", "?keys=%zz"] {
        client.get(&format!("/v1/uniques/dau{query}")).problem(400, "bad_request").await;
    }
    let many: Vec<String> = (0..401).map(|n| n.to_string()).collect();
    client.get(&format!("/v1/uniques/dau?keys={}", many.join(","))).problem(400, "bad_request").await;
}

#[tokio::test]
async fn many_are_counted_within_the_stated_error() {
    const MANY: usize = 20_000;
    let server = Server::start("").await;
    let client = server.client();
    for from in (0..MANY).step_by(1_000) {
        add(&client, "many", &users(from, from + 1_000)).await;
    }
    let read = client.get("/v1/uniques/dau/many").ok().await;
    let (estimate, error) = (read["estimate"].as_f64().unwrap(), read["error"].as_f64().unwrap());
    let off = (estimate - MANY as f64).abs() / MANY as f64;
    assert!(off <= 3.0 * error, "{estimate} is {off} off");
    let body = json!({"members": users(0, 1_001)});
    client.post("/v1/uniques/dau/many").json(&body).problem(413, "too_large").await;
}

#[tokio::test]
async fn a_limit_is_per_key() {
    let server = Server::start("[uniques.dau]\nrate_limit = \"2/hour\"\n").await;
    let client = server.client();
    add(&client, "a", &users(0, 1)).await;
    add(&client, "a", &users(1, 2)).await;
    let refused = client.post("/v1/uniques/dau/a").json(&json!({"members": ["one more"]})).send().await;
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("ratelimit-policy"), Some("\"uniques.dau\";q=2;w=3600"));
    assert_eq!(add(&client, "a", &users(0, 2)).await["changed"], false, "what changes nothing costs nothing");
    assert_eq!(add(&client, "b", &users(0, 1)).await["changed"], true);
}
