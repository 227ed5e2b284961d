//! What the tests of rooms share.

use crate::support::*;

/// Makes a room, or changes it.
pub(crate) async fn room(client: &Client, name: &str, settings: Value) {
    let answer = client.put(&format!("/v1/rooms/{name}")).json(&settings).send().await;
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
}

/// A room into which everybody goes at once.
pub(crate) fn open() -> Value {
    json!({"mode": "off", "join": "any"})
}

/// A room into which nobody goes by itself.
pub(crate) fn held() -> Value {
    json!({"mode": "hold", "join": "any", "capacity": 1_000})
}

/// Takes a ticket, and gives the answer.
pub(crate) async fn join(client: &Client, room: &str, body: Value) -> Value {
    let answer = client.post(&format!("/v1/rooms/{room}/tickets")).json(&body).send().await;
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
    answer.json()
}

/// The path of a ticket.
pub(crate) fn path(ticket: &Value) -> String {
    format!("/v1/rooms/{}/tickets/{}", ticket["room"].as_str().unwrap(), ticket["ticket"].as_str().unwrap())
}

/// Joins and claims: the claim.
pub(crate) async fn enter(client: &Client, room: &str) -> Value {
    let ticket = join(client, room, json!({})).await;
    client.post(&format!("{}/claim", path(&ticket))).ok().await
}

/// What a cookie is set to, with the rest of its line.
pub(crate) fn cookie<'a>(answer: &'a Answer, name: &str) -> Option<(&'a str, &'a str)> {
    let lines = answer.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
    let mut pairs = lines.filter_map(|line| line.split_once('='));
    let (_, rest) = pairs.find(|(own, _)| *own == name)?;
    rest.split_once(';')
}
