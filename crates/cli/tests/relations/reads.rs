//! Counts, viewers, feeds, and the registry of objects.

use crate::support::*;

const KINDS: &str = "[relations.reaction]\nread = \"public\"\none_of = [\"like\", \"love\", \"wow\"]\n";

#[tokio::test]
async fn a_count_says_whether_the_viewer_is_in_it() {
    let server = Server::start("").await;
    let client = server.client();
    client.like("post:1", "alice").await;
    let path = "/v1/relations/like/post:1";
    assert_eq!(client.get(path).ok().await, json!({"count": 1}));
    assert_eq!(client.get(&format!("{path}?viewer=alice")).ok().await, json!({"count": 1, "active": true}));
    assert_eq!(client.get(&format!("{path}?viewer=bob")).ok().await, json!({"count": 1, "active": false}));
    assert_eq!(client.get("/v1/relations/like/post:never").ok().await, json!({"count": 0}));
}

#[tokio::test]
async fn me_is_the_tokens_subject() {
    let issuer = tokens::Issuer::new();
    let server = Server::start(&issuer.config()).await;
    let alice = server.client_as(Some(&tokens::user("alice")));
    let liked = alice.put("/v1/relations/like/post:1/me").ok().await;
    assert_eq!(liked["subject"], "alice");
    assert_eq!(alice.get("/v1/relations/like/post:1/me").ok().await["active"], true);
    assert_eq!(alice.get("/v1/relations/like/post:1").ok().await, json!({"count": 1, "active": true}));
    assert_eq!(alice.get("/v1/relations/like/post:1?viewer=me").ok().await["active"], true);
    assert_eq!(alice.objects("like", "me").await, ["post:1"]);
    let feed = alice.post("/v1/read").json(&json!({"objects": ["post:1"], "relations": ["like"]})).ok().await;
    assert_eq!(feed["items"][0]["relations"]["like"], json!({"count": 1, "active": true}));
    assert_eq!(alice.delete("/v1/relations/like/post:1/me").ok().await["changed"], true);
    // An API key is nobody in particular.
    server.client().put("/v1/relations/like/post:1/me").problem(400, "bad_request").await;
}

#[tokio::test]
async fn kinds_replace_each_other_in_one_step() {
    let server = Server::start(KINDS).await;
    let client = server.client();
    let path = edge("reaction", "post:1", "alice");
    let react = async |kind: &str| client.put(&path).json(&json!({"kind": kind})).ok().await;
    let love = react("love").await;
    assert_eq!((&love["kind"], &love["changed"], &love["count"]), (&json!("love"), &json!(true), &json!(1)));
    assert_eq!(react("love").await["changed"], false);
    let wow = react("wow").await;
    assert_eq!((&wow["kind"], &wow["changed"], &wow["count"]), (&json!("wow"), &json!(true), &json!(1)));
    let expected = json!({"count": 1, "active": true, "kind": "wow", "kinds": {"like": 0, "love": 0, "wow": 1}});
    assert_eq!(client.get("/v1/relations/reaction/post:1?viewer=alice").ok().await, expected);
    assert_eq!(client.get(&path).ok().await["kind"], "wow");
    let listed = client.list("/v1/relations/reaction/post:1/subjects").await;
    assert_eq!((listed.len(), &listed[0]["kind"]), (1, &json!("wow")));
    client.delete(&path).ok().await;
    let expected = json!({"count": 0, "kinds": {"like": 0, "love": 0, "wow": 0}});
    assert_eq!(client.get("/v1/relations/reaction/post:1").ok().await, expected);
    client.put(&path).problem(400, "bad_request").await;
    client.put(&path).json(&json!({"kind": "hate"})).problem(400, "bad_request").await;
    client.put(&edge("like", "post:1", "alice")).json(&json!({"kind": "love"})).problem(400, "bad_request").await;
    assert_eq!(client.verified().await, 0);
}

#[tokio::test]
async fn one_call_renders_a_feed_in_the_order_asked() {
    let server = Server::start(KINDS).await;
    let client = server.client();
    for (object, subject) in [("post:1", "alice"), ("post:1", "bob"), ("post:3", "alice")] {
        client.like(object, subject).await;
    }
    client.put(&edge("reaction", "post:3", "alice")).json(&json!({"kind": "wow"})).ok().await;
    let body = json!({"viewer": "alice", "objects": ["post:3", "post:2", "post:1"], "relations": ["like", "reaction"]});
    let feed = client.post("/v1/read").json(&body).ok().await;
    let none = json!({"count": 0, "active": false, "kinds": {"like": 0, "love": 0, "wow": 0}});
    let expected = json!({"items": [
        {"object": "post:3", "relations": {
            "like": {"count": 1, "active": true},
            "reaction": {"count": 1, "active": true, "kind": "wow", "kinds": {"like": 0, "love": 0, "wow": 1}},
        }},
        {"object": "post:2", "relations": {"like": {"count": 0, "active": false}, "reaction": none}},
        {"object": "post:1", "relations": {"like": {"count": 2, "active": true}, "reaction": none}},
    ]});
    assert_eq!(feed, expected);
    let body = json!({"objects": ["post:1"], "relations": ["like"]});
    let feed = client.post("/v1/read").json(&body).ok().await;
    assert_eq!(feed["items"][0]["relations"]["like"], json!({"count": 2}));
}

#[tokio::test]
async fn a_feed_is_bounded_and_names_what_it_does_not_know() {
    let server = Server::start("").await;
    let client = server.client();
    let objects = |count: usize| (0..count).map(|n| format!("post:{n}")).collect::<Vec<_>>();
    let read = |body: Value| client.post("/v1/read").json(&body);
    let full = read(json!({"objects": objects(200), "relations": ["like"]})).ok().await;
    assert_eq!(full["items"].as_array().unwrap().len(), 200);
    read(json!({"objects": objects(201), "relations": ["like"]})).problem(400, "bad_request").await;
    read(json!({"objects": ["post:1"], "relations": ["likes"]})).problem(404, "relation_not_found").await;
    read(json!({"objects": ["nonsense"], "relations": ["like"]})).problem(400, "bad_request").await;
    read(json!({"objects": ["post:1"], "relation": ["like"]})).problem(400, "bad_request").await;
    read(json!({"relations": ["like"]})).problem(400, "bad_request").await;
}

#[tokio::test]
async fn objects_are_registered_changed_read_and_deleted() {
    let server = Server::start("").await;
    let client = server.client();
    let path = "/v1/objects/post:1";
    client.get(path).problem(404, "object_not_found").await;
    let body = json!({"status": "published", "attributes": {"owner": "bob", "tags": ["a"]}});
    let made = client.put(path).json(&body).ok().await;
    assert_eq!((&made["changed"], &made["status"]), (&json!(true), &json!("published")));
    assert_eq!(made["attributes"], body["attributes"]);
    let again = client.put(path).json(&body).ok().await;
    assert_eq!((&again["changed"], &again["updated_at"]), (&json!(false), &made["updated_at"]));
    let changed = client.put(path).json(&json!({"status": "hidden"})).ok().await;
    assert_eq!((&changed["changed"], &changed["created_at"]), (&json!(true), &made["created_at"]));
    let read = client.get(path).ok().await;
    assert_eq!((&read["status"], &read["attributes"]), (&json!("hidden"), &json!({})));
    assert!(read.get("changed").is_none());
    let job = client.delete(path).status(202).await;
    client.job_done(&job).await;
    client.get(path).problem(404, "object_not_found").await;
}

#[tokio::test]
async fn an_unknown_relation_is_named_with_the_nearest_there_is() {
    let server = Server::start("").await;
    let client = server.client();
    let problem = client.put("/v1/relations/lik/post:1/alice").problem(404, "relation_not_found").await;
    assert!(problem["detail"].as_str().unwrap().contains("like"), "{problem}");
    for path in ["/v1/relations/zebra/post:1", "/v1/relations/zebra/post:1/subjects", "/v1/relations/zebra/post:1/a"] {
        client.get(path).problem(404, "relation_not_found").await;
    }
    client.get("/v1/subjects/alice/relations/zebra").problem(404, "relation_not_found").await;
    client.delete("/v1/relations/zebra/post:1/alice").problem(404, "relation_not_found").await;
    client.post("/v1/relations/zebra/post:1/alice/toggle").problem(404, "relation_not_found").await;
}
