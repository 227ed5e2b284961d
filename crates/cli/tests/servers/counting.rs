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

on!(the_largest_and_smallest_numbers_do_no_harm: postgres redis cluster);
async fn the_largest_and_smallest_numbers_do_no_harm(on: On) {
    let servers: [Server; 2] = servers(&on.new_store(), "[limits.posting]\nrate = \"1000000000/day\"\n").await;
    let [first, second] = [servers[0].client(), servers[1].client()];
    for (key, by, more) in [("up", i64::MAX, 1), ("down", i64::MIN, -1)] {
        let path = format!("/v1/counters/views/{key}");
        assert_eq!(first.post(&path).json(&json!({"by": by})).ok().await["value"], by);
        let refused = second.post(&path).json(&json!({"by": more})).problem(409, "conflict").await;
        assert!(refused["detail"].as_str().unwrap().contains("overflow"), "{refused}");
        let many = join_all((0..20).map(|_| first.post(&path).json(&json!({"by": more})).send())).await;
        assert!(many.iter().all(|answer| answer.status == 409), "{:?}", many.iter().find(|a| a.status != 409));
        assert_eq!(second.get(&path).ok().await["value"], by);
    }
    let most = 1_i64 << 53;
    for (member, score) in [("best", most), ("worst", -most)] {
        first.put(&format!("/v1/boards/points/{member}")).json(&json!({"score": score})).ok().await;
    }
    second.post("/v1/boards/points/best").json(&json!({"by": 1})).problem(409, "conflict").await;
    assert_eq!(second.get("/v1/boards/points/worst?around=50").ok().await["rank"], 2);
    for rank in [3, i64::MAX as u64, u64::MAX] {
        assert_eq!(second.get(&format!("/v1/boards/points?rank={rank}")).ok().await["items"], json!([]), "{rank}");
    }
    assert_eq!(first.post("/v1/limits/posting/x").json(&json!({"cost": 1_000_000_000})).ok().await["remaining"], 0);
    first.put("/v1/attendance/daily/9999-12-31/18446744073709551615").ok().await;
    first.put("/v1/attendance/daily/1970-01-01/0").ok().await;
    let last = second.get("/v1/subjects/18446744073709551615/attendance/daily").ok().await;
    assert_eq!(last["days"], json!(["9999-12-31"]));
    first.verified().await;
}
