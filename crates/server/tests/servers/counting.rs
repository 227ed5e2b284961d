//! What is counted and limited, over all servers.

use futures_util::future::join_all;

use crate::database::{On, on, servers};
use crate::support::*;

on!(of_a_thousand_at_once_exactly_a_hundred_pass: postgres redis cluster);
async fn of_a_thousand_at_once_exactly_a_hundred_pass(on: On) {
    let servers: [Server; 3] = servers(&on.new_store(), "[limits.posting]\nrate = \"100/hour\"\n").await;
    let clients: Vec<Client> = servers.iter().map(Server::client).collect();
    let taking = (0..1_000).map(|n| clients[n % 3].post("/v1/limits/posting/alice").send());
    let answers = join_all(taking).await;
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(200), count(429)), (100, 900), "{:?}", answers.iter().find(|a| !matches!(a.status, 200 | 429)));
    for client in &clients {
        assert_eq!(client.get("/v1/limits/posting/alice").ok().await["remaining"], 0);
    }
}

on!(a_counter_counts_what_every_server_adds_and_a_key_once: postgres redis cluster);
async fn a_counter_counts_what_every_server_adds_and_a_key_once(on: On) {
    let servers: [Server; 3] = servers(&on.new_store(), "").await;
    let clients: Vec<Client> = servers.iter().map(Server::client).collect();
    let path = "/v1/counters/views/post:1";
    join_all((0..300).map(|n| clients[n % 3].post(path).ok())).await;
    let keyed = (0..50).map(|n| clients[n % 3].post(path).header("idempotency-key", "k").send());
    let answers = join_all(keyed).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.json()["value"] == 301));
    for client in &clients {
        assert_eq!(client.get(path).ok().await["value"], 301);
    }
    clients[0].verified().await;
}

on!(boards_attendance_and_unique_counts_are_one_truth: postgres redis cluster);
async fn boards_attendance_and_unique_counts_are_one_truth(on: On) {
    const EACH: usize = 40;
    let servers: [Server; 3] = servers(&on.new_store(), "[boards.dense]\nties = \"dense\"\n").await;
    let clients: Vec<Client> = servers.iter().map(Server::client).collect();
    let writing = (0..3 * EACH).map(|n| {
        let client = &clients[n % 3];
        async move {
            let member = format!("m{}", n % EACH);
            client.post(&format!("/v1/boards/points/{member}")).json(&json!({"by": n % EACH})).ok().await;
            client.put(&format!("/v1/boards/dense/{member}")).json(&json!({"score": n % 4})).ok().await;
            client.put(&format!("/v1/attendance/daily/2026-01-01/{member}")).ok().await;
            client.post("/v1/uniques/dau/day").json(&json!({"members": [member]})).ok().await;
        }
    });
    join_all(writing).await;
    for client in &clients {
        let board = client.list("/v1/boards/points").await;
        let leader = json!({"member": format!("m{}", EACH - 1), "score": 3 * (EACH - 1), "rank": 1});
        assert_eq!((board.len(), &board[0]), (EACH, &leader));
        assert!(board.iter().zip(1..).all(|(item, place)| item["rank"] == place), "{board:?}");
        assert_eq!(client.list("/v1/boards/dense").await.last().unwrap()["rank"], 4);
        assert_eq!(client.get("/v1/attendance/daily/2026-01-01").ok().await["count"], EACH);
        let all = client.get("/v1/attendance/daily?days=2026-01-01&match=all").ok().await;
        assert_eq!(all["count"], EACH);
        assert_eq!(client.get("/v1/uniques/dau/day").ok().await["estimate"], EACH);
    }
    clients[0].verified().await;
}
