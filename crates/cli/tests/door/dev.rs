//! Authentication off: pages of the Internet must not act through a developer's browser.

use crate::LIKE;
use crate::support::raw::exchange;
use crate::support::*;

async fn dev() -> Server {
    Server::start_with("", &["--dev"], None).await
}

fn from(host: &str, more: &str) -> String {
    format!("PUT {LIKE} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n{more}\r\n")
}

#[tokio::test]
async fn only_names_of_this_machine_are_answered_to() {
    let server = dev().await;
    let port = server.address().rsplit(':').next().unwrap().to_owned();
    for host in ["localhost", "127.0.0.1", "[::1]", &format!("localhost:{port}"), "127.0.0.53:80"] {
        assert_eq!(exchange(&server, from(host, "")).await.status, 200, "{host}");
    }
    for host in ["evil.example", &format!("evil.example:{port}"), "localhost.evil.example", "10.0.0.1", ""] {
        exchange(&server, from(host, "")).await.problem(403, "forbidden");
    }
    let hidden = format!(
        "PUT http://evil.example{LIKE} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    exchange(&server, hidden).await.problem(403, "forbidden");
    exchange(&server, from("localhost\r\nhost: evil.example", "")).await.problem(403, "forbidden");
    let nameless = format!("PUT {LIKE} HTTP/1.1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    exchange(&server, nameless).await.problem(403, "forbidden");
    assert_eq!(server.client_as(None).verified().await, 1);
}

#[tokio::test]
async fn only_pages_of_this_machine_may_ask() {
    let server = dev().await;
    for origin in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443", "null"] {
        let answer = exchange(&server, from("localhost", &format!("origin: {origin}\r\n"))).await;
        assert_eq!(answer.status, 200, "{origin}");
        assert!(answer.head.contains(&format!("access-control-allow-origin: {origin}")), "{}", answer.head);
        assert!(answer.head.contains("\r\nvary: origin"), "{}", answer.head);
    }
    for origin in
        ["https://evil.example", "http://localhost.evil.example", "http://10.0.0.1", "http://localhost@evil.example"]
    {
        let answer = exchange(&server, from("localhost", &format!("origin: {origin}\r\n"))).await;
        answer.problem(403, "forbidden");
        assert!(!answer.head.contains("access-control-allow"), "{}", answer.head);
        let preflight = format!(
            "OPTIONS {LIKE} HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\naccess-control-request-method: PUT\r\nconnection: close\r\n\r\n"
        );
        exchange(&server, preflight).await.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn a_page_without_an_origin_may_do_what_a_file_needs_and_no_more() {
    let server = dev().await;
    let nobody = server.client_as(None);
    let page = |asked: client::Asked| asked.header("origin", "null");
    page(nobody.put(LIKE)).ok().await;
    page(nobody.post("/v1/read")).json(&json!({"objects": ["post:1"], "relations": ["like"]})).ok().await;
    for path in ["/v1/keys", "/v1/verify", "/v1/backup", "/v1/subjects/alice/suspend", "/v1/subjects/alice/restore"] {
        page(nobody.post(path)).problem(403, "forbidden").await;
    }
    for path in ["/v1/subjects/alice", "/v1/objects/post:1"] {
        page(nobody.delete(path)).problem(403, "forbidden").await;
    }
    assert_eq!(nobody.subjects("like", "post:1").await, ["alice"], "and nothing of it was done");
    // The developer's own curl may.
    nobody.post("/v1/keys").json(&json!({"role": "admin"})).status(201).await;
}

#[tokio::test]
async fn keys_that_anybody_could_have_made_end_with_dev() {
    let mut server = dev().await;
    let nobody = server.client_as(None);
    let make = json!({"role": "admin"});
    let made = nobody.post("/v1/keys").json(&make).status(201).await;
    let made_with_it = server.client_as(made["key"].as_str()).post("/v1/keys").json(&make).status(201).await;
    let made_by_admin = server.client().post("/v1/keys").json(&make).status(201).await;
    server.stop().await;
    server.restart_without("--dev").await;
    for (made, works) in [(made, false), (made_with_it, false), (made_by_admin, true)] {
        let answer = server.client_as(made["key"].as_str()).put(LIKE).send().await;
        assert_eq!(answer.status, if works { 200 } else { 401 }, "{}", answer.text());
    }
}
