//! Tickets: taken, watched, given up.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use crate::support::tokens::{Issuer, user};
use crate::support::*;
use crate::world::*;

#[tokio::test]
async fn a_room_is_made_changed_and_closed() {
    let server = Server::start("").await;
    let client = server.client();
    let made = client.put("/v1/rooms/sale").json(&json!({"rate_per_s": 2.5, "join": "any"})).status(201).await;
    assert_eq!((&made["created"], &made["settings"]["rate_per_s"]), (&json!(true), &json!(2.5)));
    let whole = client.put("/v1/rooms/sale").json(&json!({"capacity": 7})).ok().await;
    assert_eq!((&whole["settings"]["rate_per_s"], &whole["settings"]["join"]), (&json!(10), &json!("service")));
    let wrong = client.put("/v1/rooms/sale").json(&json!({"rate": 1})).problem(400, "bad_request").await;
    assert!(wrong["detail"].as_str().unwrap().contains("`rate`"), "{wrong}");
    client.put("/v1/rooms/sale").json(&json!({"capacity": 0})).problem(400, "bad_request").await;
    client.put("/v1/rooms/Sale").problem(400, "bad_request").await;
    let looked = client.get("/v1/rooms/sale").send().await;
    assert_eq!(looked.header("cache-control"), Some("private, max-age=1"));
    assert_eq!((&looked.json()["waiting"], &looked.json()["capacity"]), (&json!(0), &json!(7)));
    let anybody = server.client_as(None);
    anybody.get("/v1/rooms/sale").problem(401, "unauthenticated").await;
    room(&client, "sale", open()).await;
    assert_eq!(anybody.get("/v1/rooms/sale").send().await.header("cache-control"), Some("public, max-age=1"));
    assert_eq!(client.get("/v1/rooms").ok().await["items"][0]["room"], "sale");
    client.get("/v1/rooms/sale/minutes?from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00Z").ok().await;
    client.get("/v1/rooms/sale/minutes?from=then").problem(400, "bad_request").await;
    anybody.delete("/v1/rooms/sale").problem(401, "unauthenticated").await;
    client.delete("/v1/rooms/sale").ok().await;
    client.get("/v1/rooms/sale").problem(404, "room_not_found").await;
    client.post("/v1/rooms/sale/tickets").problem(404, "room_not_found").await;
}

#[tokio::test]
async fn two_hundred_at_once_stand_one_behind_the_other() {
    let server = Server::start("").await;
    let client = server.client();
    room(&client, "sale", held()).await;
    let subjects = (0..200).map(|number| json!({"subject": format!("u{number}")}));
    let tickets = join_all(subjects.map(|body| join(&client, "sale", body))).await;
    let seqs: BTreeSet<u64> = tickets.iter().map(|ticket| ticket["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=200).collect());
    for ticket in join_all(tickets.iter().map(|ticket| client.get(&path(ticket)).ok())).await {
        assert_eq!((&ticket["position"], &ticket["state"]), (&ticket["seq"], &json!("WAITING")), "{ticket}");
    }
    let admit = |count: u64, key: &str| {
        client.post("/v1/rooms/sale/admit").header("idempotency-key", key).json(&json!({"count": count})).send()
    };
    for _ in 0..2 {
        let answer = admit(50, "first").await;
        assert_eq!((answer.status, &answer.json()["admitted"]), (200, &json!(50)), "{}", answer.text());
    }
    assert_eq!(admit(50, "first").await.header("idempotent-replayed"), Some("true"));
    admit(51, "first").await.problem(422, "idempotency_key_reused");
    assert_eq!(client.get("/v1/rooms/sale").ok().await["ready"], 50);
    assert_eq!(admit(100_000, "rest").await.json()["admitted"], 150);
    assert_eq!(admit(100_000, "rest").await.json()["admitted"], 150, "again");
    admit(100_001, "more").await.problem(400, "bad_request");
}

#[tokio::test]
async fn a_repeat_is_the_same_ticket() {
    let server = Server::start("").await;
    let (client, anybody) = (server.client(), server.client_as(None));
    room(&client, "sale", held()).await;
    let post = |client: &Client| client.post("/v1/rooms/sale/tickets");
    let token = json!({"token": "0123456789abcdef0123456789abcdef"});
    let first = post(&anybody).json(&token).status(201).await;
    let again = post(&anybody).json(&token).ok().await;
    assert_eq!((&first["ticket"], &first["subject"]), (&again["ticket"], &again["subject"]));
    let keyed = || post(&anybody).header("idempotency-key", "k1").send();
    let answers = join_all((0..10).map(|_| keyed())).await;
    let tickets: BTreeSet<String> = answers.iter().map(|answer| answer.json()["ticket"].to_string()).collect();
    assert_eq!(tickets.len(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    let other = post(&anybody).status(201).await;
    assert_ne!(other["ticket"], first["ticket"], "nobody is taken for another");
    let bob = post(&client).json(&json!({"subject": "bob"})).status(201).await;
    assert_eq!(post(&client).json(&json!({"subject": "bob"})).ok().await["ticket"], bob["ticket"]);
    let thief = post(&anybody).json(&json!({"subject": "bob"})).status(201).await;
    assert_ne!(
        (&thief["ticket"], &thief["subject"]),
        (&bob["ticket"], &json!("bob")),
        "naming somebody is not being them"
    );
}

#[tokio::test]
async fn who_joins_is_up_to_the_room() {
    let issuer = Issuer::new();
    let server = Server::start(&issuer.config()).await;
    let (client, anybody) = (server.client(), server.client_as(None));
    let token = user("alice");
    let alice = server.client_as(Some(&token));
    let post = |client: &Client| client.post("/v1/rooms/sale/tickets");
    room(&client, "sale", json!({"mode": "hold"})).await;
    post(&anybody).problem(401, "unauthenticated").await;
    post(&alice).problem(403, "forbidden").await;
    post(&client).status(201).await;
    room(&client, "sale", json!({"mode": "off", "join": "token"})).await;
    post(&anybody).problem(401, "unauthenticated").await;
    let own = post(&alice).status(201).await;
    assert_eq!(own["subject"], "alice");
    assert_eq!(post(&alice).json(&json!({"subject": "me"})).ok().await["ticket"], own["ticket"]);
    post(&alice).json(&json!({"subject": "bob"})).problem(403, "forbidden").await;
    let claim = format!("{}/claim", path(&own));
    anybody.post(&claim).problem(401, "unauthenticated").await;
    alice.post(&claim).ok().await;
    post(&client).json(&json!({"subject": "me"})).problem(400, "bad_request").await;
}

#[tokio::test]
async fn a_ticket_is_all_that_its_holder_needs() {
    let server = Server::start("").await;
    let (client, anybody) = (server.client(), server.client_as(None));
    room(&client, "sale", held()).await;
    let (first, second) = (join(&anybody, "sale", json!({})).await, join(&anybody, "sale", json!({})).await);
    assert_eq!(anybody.get(&format!("{}?version=0", path(&second))).ok().await["position"], 2);
    let beat = anybody.post(&format!("{}/heartbeat", path(&second))).ok().await;
    assert_eq!((&beat["ticket"], &beat["position"]), (&second["ticket"], &json!(2)));
    anybody.post(&format!("{}/claim", path(&second))).problem(409, "not_ready").await;
    anybody.post(&format!("{}/done", path(&second))).problem(409, "not_ready").await;
    let left = anybody.delete(&path(&first)).ok().await;
    assert_eq!(left["state"], "LEFT");
    assert_eq!(anybody.delete(&path(&first)).ok().await["state"], "LEFT", "again");
    assert_eq!(anybody.get(&path(&first)).ok().await["state"], "LEFT", "it is still told");
    anybody.post(&format!("{}/claim", path(&first))).problem(410, "ticket_gone").await;
    let seen = format!("{}?version={}", path(&second), left["version"]);
    assert_eq!(anybody.get(&seen).ok().await["position"], 1, "no answer is older than what was seen");
    for wrong in ["1-AAAAAAAAAAAAAAAAAAAAAA", "2", "nothing"] {
        anybody.get(&format!("/v1/rooms/sale/tickets/{wrong}")).problem(404, "ticket_not_found").await;
    }
    room(&client, "sale", json!({"mode": "drain", "join": "any"})).await;
    anybody.post("/v1/rooms/sale/tickets").problem(409, "room_closed").await;
}

#[tokio::test]
async fn strangers_send_little() {
    let server = Server::start("").await;
    let anybody = server.client_as(None);
    room(&server.client(), "sale", held()).await;
    let large = json!({"token": "x".repeat(5_000)}).to_string();
    anybody.post("/v1/rooms/sale/tickets").body("application/json", large).problem(413, "too_large").await;
    anybody.post("/v1/rooms/sale/tickets").json(&json!({"who": "me"})).problem(400, "bad_request").await;
    anybody.put("/v1/rooms/sale").json(&json!({})).problem(401, "unauthenticated").await;
}

#[tokio::test]
async fn a_ticket_is_followed_to_its_end() {
    let server = Server::start("").await;
    let (client, anybody) = (server.client(), server.client_as(None));
    room(&client, "sale", held()).await;
    let ticket = join(&anybody, "sale", json!({})).await;
    let mut stream = anybody.get(&format!("{}/events", path(&ticket))).open().await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut text = String::new();
    let mut read_to = async |wanted: &str| {
        while !text.contains(wanted) {
            let chunk = stream.chunk().await.unwrap().unwrap_or_else(|| panic!("it ended before {wanted}: {text}"));
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    };
    read_to("\"position\":1").await;
    client.post("/v1/rooms/sale/admit").json(&json!({"count": 1})).ok().await;
    read_to("\"state\":\"READY\"").await;
    anybody.delete(&path(&ticket)).ok().await;
    read_to("\"state\":\"LEFT\"").await;
    assert!(text.starts_with("event: ticket\ndata: {"), "{text}");
    while stream.chunk().await.unwrap().is_some() {}
}
