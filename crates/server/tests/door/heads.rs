//! Heads: too large, too slow, not HTTP at all.

use crate::support::raw::{Raw, exchange, parse};
use crate::support::*;
use crate::{head, idle, is_alive};

#[tokio::test]
async fn headers_past_the_limit_are_refused_with_a_problem_and_below_it_are_not() {
    let server = Server::start("[limits]\nheader_bytes_max = 16384\n").await;
    let sized = |bytes: usize| head("GET", "/healthz", &format!("x-large: {}\r\n", "x".repeat(bytes)));
    let close = "connection: close\r\n";
    let fits = exchange(&server, head("GET", "/healthz", &format!("{close}x: {}\r\n", "x".repeat(16_000)))).await;
    assert_eq!(fits.status, 200);
    let long_path = head("GET", &format!("/{}", "x".repeat(20_000)), "");
    let many: String = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect();
    for request in [sized(16_384), sized(30_000), sized(200_000), long_path, head("GET", "/healthz", &many)] {
        let answer = exchange(&server, request).await;
        assert!(answer.problem(answer.status, "too_large")["detail"].as_str().unwrap().contains("headers"));
        assert_eq!((answer.status, &answer.json()["status"]), (431, &json!(431)));
        assert!(answer.head.contains("\r\nconnection: close"), "{}", answer.head);
    }
}

#[tokio::test]
async fn what_is_not_http_gets_a_problem() {
    let server = Server::start("").await;
    for request in
        ["HELO tally\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n", "PUT / HTTP/1.1\r\ncontent-length: -5\r\n\r\n"]
    {
        exchange(&server, request).await.problem(400, "bad_request");
    }
    // After an answer on the same connection, too.
    let mut raw = idle(&server).await;
    raw.send("HELO tally\r\n\r\n").await;
    parse(&raw.rest().await).problem(400, "bad_request");
}

#[tokio::test]
async fn slow_heads_are_cut_and_idle_connections_are_not() {
    let server = Server::start("[limits]\nheader_read_timeout_ms = 300\nidle_timeout_ms = 600000\n").await;
    let mut idle_one = idle(&server).await;
    let silent = Raw::connect(&server).await;
    let mut slow = Raw::connect(&server).await;
    slow.send("GET /healthz HTTP/1.1\r\nhost: ta").await;
    let mut slow_at_the_second = idle(&server).await;
    slow_at_the_second.send("GET /healthz HTTP/1.1\r\nhost: ta").await;
    let (silent, slow, second) = tokio::join!(silent.rest(), slow.rest(), slow_at_the_second.rest());
    assert!(silent.is_empty());
    for bytes in [slow, second] {
        parse(&bytes).problem(400, "bad_request");
    }
    assert!(is_alive(&mut idle_one).await, "who has asked may stand idle for longer");
    let text = server.client().get("/metrics").send().await.text();
    assert!(text.contains("tally_connections_cut_total{why=\"slow_head\"} 3"), "{text}");
}

#[tokio::test]
async fn a_head_that_trickles_is_cut_however_often_a_byte_comes() {
    let server = Server::start("[limits]\nheader_read_timeout_ms = 300\n").await;
    let mut raw = Raw::connect(&server).await;
    raw.send("GET /healthz HTTP/1.1\r\nhost: tally\r\n").await;
    until("it is cut", async || (!raw.send("x: y\r\n").await).then_some(())).await;
}

#[tokio::test]
async fn idle_connections_are_cut_in_their_own_time() {
    let server = Server::start("[limits]\nheader_read_timeout_ms = 600000\nidle_timeout_ms = 300\n").await;
    let mut fresh = Raw::connect(&server).await;
    assert!(idle(&server).await.rest().await.is_empty());
    assert!(is_alive(&mut fresh).await, "one that has not asked yet has the time for its headers");
}
