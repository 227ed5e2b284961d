//! Bodies: of nobody, of too many at once, that never end.

use crate::support::raw::{Raw, parse};
use crate::support::*;
use crate::{JSON, LIKE, anonymous, head};

/// Every call that takes a body.
const CALLS: [(&str, &str); 16] = [
    ("PUT", LIKE),
    ("PUT", "/v1/relations/like/post:1/subjects"),
    ("POST", "/v1/relations/like/post:1/alice/toggle"),
    ("POST", "/v1/read"),
    ("POST", "/v1/batch"),
    ("POST", "/v1/counters/views/post:1"),
    ("POST", "/v1/uniques/visitors/post:1"),
    ("PUT", "/v1/attendance/daily/2026-01-01/alice"),
    ("POST", "/v1/boards/points/alice"),
    ("PUT", "/v1/boards/points/alice"),
    ("POST", "/v1/limits/posting/alice"),
    ("PUT", "/v1/objects/post:1"),
    ("POST", "/v1/subjects/alice/suspend"),
    ("POST", "/v1/verify"),
    ("POST", "/v1/backup"),
    ("POST", "/v1/keys"),
];

#[tokio::test]
async fn nobody_is_told_so_before_a_byte_of_the_body_is_wanted() {
    let server = Server::start("").await;
    for (method, path) in CALLS {
        for who in ["", "authorization: Bearer tally_nobody\r\n"] {
            let mut raw = Raw::connect(&server).await;
            raw.send(anonymous(method, path, &format!("{who}{JSON}content-length: 1000000\r\n"))).await;
            let answer = parse(&raw.read_some().await);
            answer.problem(401, "unauthenticated");
            assert!(answer.head.contains("\r\nconnection: close"), "{method} {path}: {}", answer.head);
        }
    }
}

#[tokio::test]
async fn who_keeps_sending_still_gets_to_read_why_it_is_refused() {
    let server = Server::start("").await;
    let body = " ".repeat(1 << 20);
    let requests = [
        (anonymous("PUT", LIKE, &format!("{JSON}content-length: {}\r\n", 1 << 20)), 401),
        (head("PUT", LIKE, &format!("{JSON}content-length: {}\r\n", 8 << 20)), 413),
        (anonymous("GET", "/healthz", &format!("{JSON}content-length: {}\r\n", 1 << 20)), 200),
    ];
    for (request, status) in requests {
        let mut raw = Raw::connect(&server).await;
        // All of it is taken: the connection is not reset under the client's hands.
        assert!(raw.send(request).await && raw.send(&body).await);
        let answer = parse(&raw.rest().await);
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.head.contains("\r\nconnection: close"), "{}", answer.head);
    }
}

#[tokio::test]
async fn unfinished_bodies_together_hold_no_more_than_the_limit() {
    let server = Server::start("[bounds]\nunfinished_bytes_max = 1048576\n").await;
    let part = " ".repeat(400 << 10);
    let long = |path: &str| head("PUT", path, &format!("{JSON}content-length: {}\r\n", 900 << 10));
    let mut holding = Vec::new();
    for _ in 0..2 {
        let mut raw = Raw::connect(&server).await;
        raw.send(long(LIKE)).await;
        raw.send(&part).await;
        holding.push(raw);
    }
    let admin = server.client();
    let held = async || {
        let text = admin.get("/metrics").send().await.text();
        let line = text.lines().find(|line| line.starts_with("tally_http_unfinished_bytes ")).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    until("both are held", async || (held().await >= 800 << 10).then_some(())).await;
    let mut third = Raw::connect(&server).await;
    third.send(long(LIKE)).await;
    third.send(&part).await;
    let refused = parse(&third.rest().await);
    refused.problem(503, "overloaded");
    assert!(refused.head.contains("\r\nretry-after: 1"), "{}", refused.head);
    // Small requests go on meanwhile, and large ones again when the others are gone.
    assert_eq!(admin.like("post:2", "alice").await["changed"], true);
    drop(holding);
    until("it is given back", async || (held().await < 4096).then_some(())).await;
    let fits = format!("{{{}}}", " ".repeat(900 << 10));
    assert_eq!(admin.put(LIKE).body("application/json", fits).send().await.status, 200);
}

#[tokio::test]
async fn calls_without_a_time_limit_do_not_wait_for_their_body_for_ever() {
    let server = Server::start("[bounds]\nrequest_timeout_ms = 200\n").await;
    for path in ["/v1/verify", "/v1/backup"] {
        let mut raw = Raw::connect(&server).await;
        raw.send(head("POST", path, &format!("{JSON}content-length: 100\r\n"))).await;
        raw.send("{").await;
        parse(&raw.rest().await).problem(400, "bad_request");
    }
}

#[tokio::test]
async fn a_meta_of_many_values_is_refused_as_any_that_is_too_large() {
    let server = Server::start("").await;
    let admin = server.client();
    let many = format!("{{\"a\":[{}0]}}", "0,".repeat(500_000));
    let body = |field: &str| format!("{{\"{field}\":{many}}}");
    let json = "application/json";
    for _ in 0..2 {
        admin.put(LIKE).body(json, body("meta")).problem(413, "too_large").await;
        admin.post(&format!("{LIKE}/toggle")).body(json, body("meta")).problem(413, "too_large").await;
        admin.put("/v1/objects/post:1").body(json, body("attributes")).problem(413, "too_large").await;
    }
    let command = |meta: &str| {
        format!("{{\"op\":\"relate\",\"relation\":\"like\",\"object\":\"post:1\",\"subject\":\"a\",\"meta\":{meta}}}")
    };
    let batch = |atomic: bool| {
        let commands = format!("{},{}", command("{}"), command(&many));
        admin.post("/v1/batch").body(json, format!("{{\"atomic\":{atomic},\"commands\":[{commands}]}}"))
    };
    let refused = batch(true).problem(409, "batch_refused").await;
    assert_eq!((&refused["index"], &refused["cause"]), (&json!(1), &json!("too_large")));
    let results = batch(false).ok().await["results"].clone();
    assert_eq!((&results[0]["changed"], &results[1]["code"]), (&json!(true), &json!("too_large")));
}

#[tokio::test]
async fn what_is_read_out_of_a_batch_counts_among_what_is_held() {
    let server = Server::start("[bounds]\nunfinished_bytes_max = 1048576\n").await;
    let admin = server.client();
    let commands = |meta: Value| -> Vec<Value> {
        let command = |n| json!({"op": "relate", "relation": "like", "object": "post:1", "subject": format!("fan-{n}"), "meta": meta});
        (0..20).map(command).collect()
    };
    let send = |meta: Value| admin.post("/v1/batch").json(&json!({"commands": commands(meta)}));
    send(json!({"a": vec![0; 8_000]})).problem(503, "overloaded").await;
    assert_eq!(admin.count("like", "post:1").await, 0);
    send(json!({"a": "0".repeat(16_000)})).ok().await;
    assert_eq!(admin.count("like", "post:1").await, 20);
}
