//! kill -9, over and over, under load.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;

use crate::load::{Writer, loaded};
use crate::support::*;

const CYCLES: usize = 24;
const WRITERS: usize = 8;

#[tokio::test]
async fn every_answered_write_survives_every_kill() {
    let mut server = Server::start("").await;
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    for cycle in 0..CYCLES {
        let enough = 60 + cycle * 37 % 120;
        loaded(&mut server, &mut writers, enough, async |server| server.kill()).await;
    }
}

#[tokio::test]
async fn a_job_goes_on_after_a_kill() {
    const EDGES: usize = 8_000;
    let mut server = Server::start("").await;
    let client = server.client();
    let commands: Vec<Value> = (0..EDGES)
        .map(|n| json!({"op": "relate", "relation": "like", "object": format!("post:{n}"), "subject": "alice"}))
        .collect();
    client.post("/v1/batch").json(&json!({"atomic": false, "commands": commands})).ok().await;
    client.like("post:1", "bob").await;
    let job = client.delete("/v1/subjects/alice").status(202).await;
    server.kill();
    for _ in 0..3 {
        server.restart().await;
        server.kill();
    }
    server.restart().await;
    let client = server.client();
    assert_eq!(client.job_done(&job).await["edges"], EDGES);
    assert_eq!(client.objects("like", "alice").await, Vec::<String>::new());
    assert_eq!(client.count("like", "post:1").await, 1);
    assert_eq!(client.verified().await, 1);
}

#[tokio::test]
async fn remembered_answers_survive_a_kill() {
    let mut server = Server::start("").await;
    let path = format!("{}/toggle", edge("like", "post:1", "alice"));
    let toggle = async |server: &Server| server.client().post(&path).header("idempotency-key", "k-1").send().await;
    let first = toggle(&server).await;
    assert_eq!(first.header("idempotent-replayed"), None);
    server.kill();
    server.restart().await;
    let again = toggle(&server).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.json(), first.json());
    assert_eq!(server.client().count("like", "post:1").await, 1);
}

#[tokio::test]
async fn keys_and_their_revocation_survive_a_kill() {
    let mut server = Server::start("").await;
    let admin = server.client();
    let make = async || admin.post("/v1/keys").json(&json!({"role": "service"})).status(201).await;
    let (kept, revoked) = (make().await, make().await);
    admin.delete(&format!("/v1/keys/{}", revoked["id"].as_str().unwrap())).ok().await;
    server.kill();
    server.restart().await;
    server.client_as(kept["key"].as_str()).like("post:1", "alice").await;
    let stranger = server.client_as(revoked["key"].as_str());
    stranger.put(&edge("like", "post:1", "bob")).problem(401, "unauthenticated").await;
}

#[tokio::test]
async fn suspension_survives_a_kill_and_restoring_brings_the_times_back() {
    let mut server = Server::start("").await;
    let client = server.client();
    client.like("post:1", "alice").await;
    let before = client.list("/v1/relations/like/post:1/subjects").await;
    client.post("/v1/subjects/alice/suspend").status(202).await;
    server.kill();
    server.restart().await;
    let client = server.client();
    client.put(&edge("like", "post:2", "alice")).problem(403, "forbidden").await;
    until("the edge is hidden", async || (client.count("like", "post:1").await == 0).then_some(())).await;
    let job = client.post("/v1/subjects/alice/restore").status(202).await;
    client.job_done(&job).await;
    assert_eq!(client.list("/v1/relations/like/post:1/subjects").await, before);
    client.verified().await;
}

#[tokio::test]
async fn every_answered_addition_to_a_counter_survives_and_a_retry_counts_once() {
    const CLIENTS: usize = 8;
    let mut server = Server::start("").await;
    let path = "/v1/counters/views/post:1";
    // The additions of each client that were answered; the next one may have been made without an answer.
    let mut answered = [0_usize; CLIENTS];
    for cycle in 1..=8 {
        let client = server.client();
        let all = AtomicUsize::new(0);
        let adding = answered.iter_mut().enumerate().map(|(who, answered)| {
            let (client, all) = (&client, &all);
            async move {
                loop {
                    let request = client.post(path).header("idempotency-key", &format!("{who}-{answered}"));
                    let Ok(answer) = request.try_send().await else { return };
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    *answered += 1;
                    all.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let adding = join_all(adding);
        let killing = async {
            until("enough is counted", async || (all.load(Ordering::Relaxed) >= 40 * cycle).then_some(())).await;
            server.kill();
        };
        tokio::join!(adding, killing);
        server.restart().await;
        let value = server.client().get(path).ok().await["value"].as_u64().unwrap() as usize;
        let known: usize = answered.iter().sum();
        assert!((known..=known + CLIENTS).contains(&value), "{known} were answered, {value} are there");
    }
    let client = server.client();
    for (who, answered) in answered.iter().enumerate() {
        client.post(path).header("idempotency-key", &format!("{who}-{answered}")).ok().await;
    }
    let all: usize = answered.iter().sum::<usize>() + CLIENTS;
    assert_eq!(client.get(path).ok().await["value"], all, "each key counted once");
    client.verified().await;
}
