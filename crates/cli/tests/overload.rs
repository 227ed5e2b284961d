//! More than the server can take: a clear refusal, nothing half done, and then business as usual.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use support::raw::{Raw, parse};
use support::*;

#[tokio::test]
async fn a_full_queue_refuses_and_what_it_took_is_right() {
    let server = Server::start("[bounds]\nqueue_depth_max = 2\n").await;
    let client = server.client();
    let mut accepted = BTreeSet::new();
    let mut refused = 0;
    let mut round = 0;
    until("some writes are refused and some are taken", async || {
        round += 1;
        let subjects: Vec<String> = (0..600).map(|n| format!("fan-{round}-{n}")).collect();
        let paths: Vec<String> = subjects.iter().map(|subject| edge("like", "post:1", subject)).collect();
        let answers = join_all(paths.iter().map(|path| client.put(path).send())).await;
        for (subject, answer) in subjects.into_iter().zip(answers) {
            if answer.status == 200 {
                accepted.insert(subject);
            } else {
                answer.problem(503, "overloaded");
                assert_eq!(answer.header("retry-after"), Some("1"));
                refused += 1;
            }
        }
        (refused > 0 && !accepted.is_empty()).then_some(())
    })
    .await;
    let there: BTreeSet<String> = client.subjects("like", "post:1").await.into_iter().collect();
    assert_eq!(there, accepted, "taken is there, refused is not");
    assert_eq!(client.verified().await, accepted.len() as u64);
    assert_eq!(client.like("post:2", "alice").await["changed"], true, "and on it goes");
    client.get("/readyz").ok().await;
}

#[tokio::test]
async fn a_batch_that_does_not_fit_the_queue_is_refused_as_a_whole() {
    let server = Server::start("[bounds]\nqueue_depth_max = 10\n").await;
    let client = server.client();
    let commands: Vec<Value> = (0..400)
        .map(|n| json!({"op": "relate", "relation": "like", "object": "post:1", "subject": format!("fan-{n}")}))
        .collect();
    let body = json!({"atomic": true, "commands": commands});
    until("a batch is refused", async || {
        let answers = join_all((0..40).map(|_| client.post("/v1/batch").json(&body).send())).await;
        let (taken, refused): (Vec<Answer>, Vec<Answer>) = answers.into_iter().partition(|answer| answer.status == 200);
        for answer in &refused {
            answer.problem(503, "overloaded");
        }
        (!taken.is_empty() && !refused.is_empty()).then_some(())
    })
    .await;
    assert_eq!(client.count("like", "post:1").await, 400);
    assert_eq!(client.verified().await, 400);
}

#[tokio::test]
async fn connections_past_the_limit_wait_their_turn() {
    let server = Server::start("[bounds]\nconnections_max = 3\n").await;
    let stream = format!(
        "GET /v1/live?objects=post:1&relations=like HTTP/1.1\r\nhost: tally\r\nauthorization: Bearer {ADMIN_KEY}\r\n\r\n"
    );
    let mut open = Vec::new();
    until("three connections are at work", async || {
        // The one that asked whether the server is ready may still be on its way out.
        let mut raw = Raw::connect(&server).await;
        raw.send(&stream).await;
        assert_eq!(parse(&raw.read_some().await).status, 200);
        open.push(raw);
        (open.len() == 3).then_some(())
    })
    .await;
    let mut waiting = Raw::connect(&server).await;
    waiting.send("GET /healthz HTTP/1.1\r\nhost: tally\r\n\r\n").await;
    let too_soon = tokio::time::timeout(Duration::from_millis(300), waiting.read_some()).await;
    assert!(too_soon.is_err(), "every place is taken");
    drop(open.pop());
    assert_eq!(parse(&waiting.read_some().await).status, 200, "a place is free");
}

#[tokio::test]
async fn live_streams_past_the_limit_are_refused_until_one_ends() {
    let server = Server::start("[bounds]\nsubscriptions_max = 2\n").await;
    let client = server.client();
    let query = "objects=post:1&relations=like";
    let first = Events::open(&client, query).await;
    let _second = Events::open(&client, query).await;
    let refused = client.get(&format!("/v1/live?{query}")).send().await;
    refused.problem(503, "overloaded");
    assert_eq!(refused.header("retry-after"), Some("1"));
    drop(first);
    until("the place of the stream that ended is free", async || {
        (client.get(&format!("/v1/live?{query}")).open().await.status() == 200).then_some(())
    })
    .await;
    assert_eq!(client.like("post:1", "alice").await["changed"], true, "writes are none the worse");
}
