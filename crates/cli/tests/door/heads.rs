//! Heads: too large, too slow, not HTTP at all.

use crate::http_2;
use crate::support::raw::{Raw, exchange, parse};
use crate::support::*;
use crate::{JSON, LIKE, anonymous, head, idle, is_alive};

#[tokio::test]
async fn headers_past_the_limit_are_refused_with_a_problem_and_below_it_are_not() {
    let server = Server::start("[bounds]\nheader_bytes_max = 16384\n").await;
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
    let server = Server::start("[bounds]\nheader_read_timeout_ms = 300\nidle_timeout_ms = 600000\n").await;
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
    let server = Server::start("[bounds]\nheader_read_timeout_ms = 300\n").await;
    let mut raw = Raw::connect(&server).await;
    raw.send("GET /healthz HTTP/1.1\r\nhost: tally\r\n").await;
    until("it is cut", async || (!raw.send("x: y\r\n").await).then_some(())).await;
}

#[tokio::test]
async fn idle_connections_are_cut_in_their_own_time() {
    let server = Server::start("[bounds]\nheader_read_timeout_ms = 600000\nidle_timeout_ms = 300\n").await;
    let mut fresh = Raw::connect(&server).await;
    assert!(idle(&server).await.rest().await.is_empty());
    assert!(is_alive(&mut fresh).await, "one that has not asked yet has the time for its headers");
}

#[tokio::test]
async fn half_a_head_behind_a_whole_request_is_a_slow_head() {
    let server = Server::start("[bounds]\nheader_read_timeout_ms = 300\nidle_timeout_ms = 600000\n").await;
    let sized = format!("{}{{}}", head("PUT", LIKE, &format!("{JSON}content-length: 2\r\n")));
    let chunked = head("PUT", LIKE, &format!("{JSON}transfer-encoding: chunked\r\n")) + "2\r\n{}\r\n0\r\n\r\n";
    for request in [anonymous("GET", "/healthz", ""), sized, chunked] {
        // Whole requests are answered, however many come at once; what is behind them has its time, and no more.
        let mut raw = Raw::connect(&server).await;
        raw.send(format!("{request}{request}GET /healthz HTTP/1.1\r\nhost: ta")).await;
        let text = String::from_utf8(raw.rest().await).unwrap();
        assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{text}");
        assert!(text.contains("HTTP/1.1 400 Bad Request\r\n") && text.contains("were not sent within"), "{text}");
        let mut idle_one = Raw::connect(&server).await;
        idle_one.send(&request).await;
        assert!(String::from_utf8_lossy(&idle_one.read_some().await).starts_with("HTTP/1.1 200"));
        assert!(is_alive(&mut idle_one).await, "where nothing is behind it, it stands idle");
    }
}

/// Until so much is held by what is unfinished.
async fn until_held(server: &Server, bytes: usize) {
    let (client, line) = (server.client(), format!("\ntally_http_unfinished_bytes {bytes}\n"));
    until(&format!("{bytes} bytes are held"), async || {
        client.get("/metrics").send().await.text().contains(&line).then_some(())
    })
    .await;
}

/// What of an unfinished head is not counted.
const FREE: usize = 4_096;

/// One of `bytes` bytes, in each protocol.
fn unfinished_1(bytes: usize) -> Vec<u8> {
    let mut head = b"GET /healthz HTTP/1.1\r\nhost: tally\r\nx-large: ".to_vec();
    head.resize(bytes, b'x');
    head
}

fn unfinished_2(bytes: usize) -> Vec<u8> {
    let mut sent = http_2::PREFACE.to_vec();
    sent.extend(http_2::unfinished_head(1, bytes));
    sent
}

#[tokio::test]
async fn unfinished_heads_together_hold_no_more_than_half_of_the_limit() {
    for unfinished in [unfinished_1, unfinished_2] {
        let server = Server::start("[bounds]\nunfinished_bytes_max = 65536\n").await;
        let mut holding = Raw::connect(&server).await;
        holding.send(unfinished(FREE + 25_000)).await;
        until_held(&server, 25_000).await;
        let mut refused = Raw::connect(&server).await;
        refused.send(unfinished(FREE + 10_000)).await;
        refused.rest().await;
        until_held(&server, 25_000).await;
        // Who sends no more than everybody does is not in the way.
        let mut small = Raw::connect(&server).await;
        small.send(unfinished(FREE)).await;
        assert!(is_alive(&mut Raw::connect(&server).await).await);
        drop(holding);
        until_held(&server, 0).await;
        let mut next = Raw::connect(&server).await;
        next.send(unfinished(FREE + 10_000)).await;
        until_held(&server, 10_000).await;
    }
}

#[tokio::test]
async fn a_head_of_http_2_that_is_not_finished_is_cut_also_when_it_is_not_the_first() {
    let server = Server::start("[bounds]\nheader_read_timeout_ms = 300\nidle_timeout_ms = 600000\n").await;
    let mut raw = Raw::connect(&server).await;
    raw.send([http_2::PREFACE, &http_2::whole_head(1)].concat()).await;
    until("it is answered", async || {
        let read = raw.read_some().await;
        String::from_utf8_lossy(&read).contains("\"status\"").then_some(())
    })
    .await;
    raw.send(http_2::unfinished_head(3, 100)).await;
    raw.rest().await;
    let text = server.client().get("/metrics").send().await.text();
    assert!(text.contains("tally_connections_cut_total{why=\"slow_head\"} 1"), "{text}");
}

#[tokio::test]
async fn what_was_sent_in_time_is_answered_though_the_server_was_late() {
    let server = Server::start("[bounds]\nheader_read_timeout_ms = 500\nidle_timeout_ms = 500\n").await;
    let mut waiting = Vec::new();
    for number in 0..30 {
        waiting.push(if number % 2 == 0 { Raw::connect(&server).await } else { idle(&server).await });
    }
    server.pause(true);
    for raw in &mut waiting {
        raw.send(anonymous("GET", "/healthz", "connection: close\r\n")).await;
    }
    let since = std::time::Instant::now();
    until("their time is over", async || (since.elapsed().as_millis() > 700).then_some(())).await;
    server.pause(false);
    for raw in waiting {
        assert_eq!(parse(&raw.rest().await).status, 200);
    }
}
