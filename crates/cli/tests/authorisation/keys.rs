//! API keys: made over the API, shown once, revoked at once.

use crate::support::*;

async fn make(admin: &Client, role: &str) -> Value {
    admin.post("/v1/keys").json(&json!({"role": role, "name": format!("a {role} key")})).status(201).await
}

#[tokio::test]
async fn a_key_works_at_once_and_stops_at_once() {
    let server = Server::start("").await;
    let admin = server.client();
    let made = make(&admin, "service").await;
    let service = server.client_as(made["key"].as_str());
    assert_eq!(service.like("post:1", "alice").await["changed"], true);
    let path = format!("/v1/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(admin.delete(&path).ok().await["changed"], true);
    service.put(&edge("like", "post:1", "bob")).problem(401, "unauthenticated").await;
    service.get("/v1/relations/like/post:1").problem(401, "unauthenticated").await;
    assert_eq!(admin.delete(&path).ok().await["changed"], false, "once");
    admin.delete("/v1/keys/nosuchkey").problem(404, "not_found").await;
}

#[tokio::test]
async fn keys_are_listed_without_their_secrets() {
    let server = Server::start("").await;
    let admin = server.client();
    let (read, service) = (make(&admin, "read").await, make(&admin, "service").await);
    admin.delete(&format!("/v1/keys/{}", read["id"].as_str().unwrap())).ok().await;
    let answer = admin.get("/v1/keys").send().await;
    let text = answer.text();
    let items = answer.json()["items"].as_array().unwrap().clone();
    for made in [&read, &service] {
        let listed = items.iter().find(|item| item["id"] == made["id"]).unwrap();
        assert_eq!((&listed["role"], &listed["name"]), (&made["role"], &made["name"]));
        assert_eq!(listed["revoked_at"].is_string(), made["role"] == "read", "{listed}");
        let secret = made["key"].as_str().unwrap().rsplit('_').next().unwrap();
        assert!(!text.contains(secret), "a list tells no secret");
    }
    assert!(!text.contains("hash"), "{text}");
}

#[tokio::test]
async fn a_changed_secret_is_no_key() {
    let server = Server::start("").await;
    let key = make(&server.client(), "service").await["key"].as_str().unwrap().to_owned();
    let flipped = if key.ends_with('A') { 'B' } else { 'A' };
    let last_changed = format!("{}{flipped}", &key[..key.len() - 1]);
    for wrong in [&key[..key.len() - 1], &format!("{key}A"), &last_changed, &key.to_uppercase(), "tally__"] {
        server.client_as(Some(wrong)).get("/v1/relations/like/post:1").problem(401, "unauthenticated").await;
    }
    assert_eq!(server.client_as(Some(&key)).count("like", "post:1").await, 0);
}

#[tokio::test]
async fn a_key_needs_a_role_that_exists() {
    let server = Server::start("").await;
    let admin = server.client();
    for body in [json!({"role": "god"}), json!({"name": "x"}), json!({"role": "read", "name": "x".repeat(200)})] {
        admin.post("/v1/keys").json(&body).problem(400, "bad_request").await;
    }
    assert_eq!(admin.get("/v1/keys").ok().await["items"], json!([]));
}
