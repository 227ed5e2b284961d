//! Places for connections: who does nothing with one gives way.

use tokio::io::AsyncReadExt;

use crate::support::raw::{Raw, parse};
use crate::support::*;
use crate::{head, idle};

const FULL: &str = "[bounds]\nconnections_max = 8\nheader_read_timeout_ms = 600000\nidle_timeout_ms = 600000\n";

#[tokio::test]
async fn connections_that_say_nothing_do_not_keep_others_out() {
    let server = Server::start(FULL).await;
    let mut silent = Vec::new();
    for number in 0..40 {
        let mut raw = Raw::connect(&server).await;
        match number % 4 {
            0 => drop(raw.send("GET /healthz HTTP/1.1\r\nhost: ta").await),
            1 => drop(raw.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await),
            _ => {}
        }
        silent.push(raw);
    }
    server.client().get("/healthz").ok().await;
}

#[tokio::test]
async fn idle_connections_give_way_and_those_at_work_do_not() {
    let server = Server::start(FULL).await;
    let client = server.client();
    let mut events = Events::open(&client, "objects=post:1&relations=like").await;
    events.next().await.unwrap();
    let mut idle_ones = Vec::new();
    for _ in 0..20 {
        idle_ones.push(idle(&server).await);
    }
    server.client_as(None).get("/healthz").ok().await;
    server.client().like("post:1", "alice").await;
    assert_eq!(events.next().await.unwrap()["count"], 1, "the stream has kept its place");
}

#[tokio::test]
async fn who_does_not_read_its_answer_is_cut() {
    let server = Server::start("[bounds]\nrequest_timeout_ms = 300\n").await;
    // Far more than the system keeps for a client that does not read.
    let mut raw = Raw::connect(&server).await;
    let request = head("GET", "/openapi.json", "");
    let mut refused = false;
    until("it is cut", async || {
        let sent = tokio::time::timeout(std::time::Duration::from_millis(50), raw.send(&request)).await;
        refused = refused || sent == Ok(false);
        refused.then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_idle_connections() {
    let mut server = Server::start("[bounds]\nshutdown_grace_ms = 600000\n").await;
    let (mut asked, mut silent) = (idle(&server).await, Raw::connect(&server).await);
    let mut working = Raw::connect(&server).await;
    working.send(head("PUT", crate::LIKE, "content-type: application/json\r\ncontent-length: 2\r\n")).await;
    working.send("{").await;
    until("half of its body is there", async || {
        let text = server.client().get("/metrics").send().await.text();
        text.contains("\ntally_http_unfinished_bytes 1\n").then_some(())
    })
    .await;
    server.terminate();
    let mut bytes = Vec::new();
    asked.0.read_to_end(&mut bytes).await.unwrap();
    silent.0.read_to_end(&mut bytes).await.unwrap();
    assert!(bytes.is_empty());
    working.send("}").await;
    assert_eq!(parse(&working.rest().await).status, 200, "what was begun is answered");
    assert!(server.ended().await.success());
}
