//! What a relation's declaration promises: shapes, immutability, limits, existence, ownership, conditions.

use crate::support::*;

async fn with_meta(client: &Client, relation: &str, meta: Value) -> Answer {
    client.put(&edge(relation, "post:1", "alice")).json(&json!({"meta": meta})).send().await
}

#[tokio::test]
async fn meta_is_held_to_its_declared_shape() {
    let config = r#"
        [relations.bookmark]
        mutable_meta = true
        meta = { memo = "string(5)", notify = "bool", at = "timestamp", stars = "int", weight = "float" }
        [relations.note]
        meta = { text = "string!" }
    "#;
    let server = Server::start(config).await;
    let client = server.client();
    for good in [
        json!({}),
        json!({"memo": "가나다라마"}),
        json!({"notify": true, "stars": -3, "weight": 0.5}),
        json!({"at": "2026-01-01T00:00:00Z"}),
    ] {
        let answer = with_meta(&client, "bookmark", good.clone()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["meta"], if good == json!({}) { Value::Null } else { good });
    }
    for bad in [
        json!({"memo": "123456"}),
        json!({"memo": 1}),
        json!({"notify": "yes"}),
        json!({"at": "yesterday"}),
        json!({"stars": 1.5}),
        json!({"other": 1}),
    ] {
        let problem = with_meta(&client, "bookmark", bad.clone()).await.problem(400, "bad_request");
        let field = bad.as_object().unwrap().keys().next().unwrap().clone();
        assert!(problem["detail"].as_str().unwrap().contains(&field), "{problem}");
    }
    client.put(&edge("note", "post:1", "alice")).problem(400, "bad_request").await;
    assert_eq!(client.count("note", "post:1").await, 0);
}

#[tokio::test]
async fn free_meta_is_bounded_in_size_and_depth() {
    let server = Server::start("").await;
    let client = server.client();
    with_meta(&client, "like", json!({"a": "x".repeat(17 * 1024)})).await.problem(413, "too_large");
    let deep = (0..20).fold(json!(1), |inner, _| json!([inner]));
    with_meta(&client, "like", json!({"a": deep})).await.problem(400, "bad_request");
    with_meta(&client, "like", json!("text")).await.problem(400, "bad_request");
    with_meta(&client, "like", json!([1])).await.problem(400, "bad_request");
    assert_eq!(client.count("like", "post:1").await, 0);
}

#[tokio::test]
async fn an_edges_meta_is_immutable_unless_declared_otherwise() {
    let server = Server::start("[relations.editable]\nmutable_meta = true\n").await;
    let client = server.client();
    let first = with_meta(&client, "like", json!({"n": 1})).await.json();
    with_meta(&client, "like", json!({"n": 2})).await.problem(409, "immutable");
    let same = with_meta(&client, "like", json!({"n": 1})).await.json();
    assert_eq!((&same["changed"], &same["created_at"]), (&json!(false), &first["created_at"]));
    let unsaid = client.like("post:1", "alice").await;
    assert_eq!((&unsaid["changed"], &unsaid["meta"]), (&json!(false), &json!({"n": 1})));
    client.unlike("post:1", "alice").await;
    assert_eq!(with_meta(&client, "like", json!({"n": 2})).await.json()["meta"], json!({"n": 2}));

    let first = with_meta(&client, "editable", json!({"n": 1})).await.json();
    let edited = with_meta(&client, "editable", json!({"n": 2})).await.json();
    assert_eq!((&edited["changed"], &edited["meta"]), (&json!(true), &json!({"n": 2})));
    assert_eq!((&edited["created_at"], &edited["count"]), (&first["created_at"], &json!(1)));
}

#[tokio::test]
async fn a_limit_holds_and_lowering_it_leaves_old_edges_removable() {
    let favorite = |limit: u32| format!("[relations.favorite]\nlimit_per_subject = {limit}\n");
    let mut server = Server::start(&favorite(3)).await;
    let put = async |client: &Client, n: u32| client.put(&edge("favorite", &format!("post:{n}"), "alice")).send().await;
    let client = server.client();
    for n in 1..=3 {
        assert_eq!(put(&client, n).await.status, 200);
    }
    put(&client, 4).await.problem(409, "limit_exceeded");
    assert_eq!(put(&client, 2).await.json()["changed"], false, "one that is there already is no more");
    assert_eq!(client.put(&edge("favorite", "post:4", "bob")).ok().await["changed"], true, "a limit each");
    server.stop().await;
    server.restart_with(&favorite(1)).await;
    let client = server.client();
    assert_eq!(client.objects("favorite", "alice").await, ["post:3", "post:2", "post:1"]);
    for n in [1, 2] {
        put(&client, 4).await.problem(409, "limit_exceeded");
        client.delete(&edge("favorite", &format!("post:{n}"), "alice")).ok().await;
    }
    put(&client, 4).await.problem(409, "limit_exceeded");
    client.delete(&edge("favorite", "post:3", "alice")).ok().await;
    assert_eq!(put(&client, 4).await.json()["changed"], true);
    assert_eq!(client.verified().await, 2);
}

#[tokio::test]
async fn only_registered_objects_where_that_is_required() {
    let server = Server::start("[relations.bookmark]\nrequires_object = true\n").await;
    let client = server.client();
    let path = edge("bookmark", "post:1", "alice");
    client.put(&path).problem(404, "object_not_found").await;
    client.post(&format!("{path}/toggle")).problem(404, "object_not_found").await;
    assert_eq!(client.verified().await, 0, "nothing was written");
    client.put("/v1/objects/post:1").ok().await;
    assert_eq!(client.put(&path).ok().await["changed"], true);
    let job = client.delete("/v1/objects/post:1").status(202).await;
    assert_eq!(client.job_done(&job).await["edges"], 1);
    client.put(&path).problem(404, "object_not_found").await;
    assert_eq!(client.count("bookmark", "post:1").await, 0);
    assert_eq!(client.objects("bookmark", "alice").await, Vec::<String>::new());
}

#[tokio::test]
async fn nobody_follows_themselves_where_that_is_not_allowed() {
    let server = Server::start("[relations.follow]\nread = \"public\"\nallow_self = false\n").await;
    let client = server.client();
    client.put("/v1/objects/post:1").json(&json!({"attributes": {"owner": "alice"}})).ok().await;
    client.put(&edge("follow", "post:1", "alice")).problem(403, "forbidden").await;
    client.put(&edge("follow", "user:alice", "alice")).problem(403, "forbidden").await;
    assert_eq!(client.put(&edge("follow", "post:1", "bob")).ok().await["changed"], true);
    assert_eq!(client.put(&edge("follow", "user:alice", "bob")).ok().await["changed"], true);
    assert_eq!(client.put(&edge("like", "post:1", "alice")).ok().await["changed"], true, "allowed unless said");
}

#[tokio::test]
async fn conditions_decide_on_relating_unrelating_and_reading() {
    let config = r#"
        [relations.like]
        read = "public"
        when.relate = "object.status == 'published' && subject != 'banned'"
        when.unrelate = "!has(meta.keep) || meta.keep == false"
        when.read = "object.attributes.secret != true"
    "#;
    let server = Server::start(config).await;
    let client = server.client();
    client.put("/v1/objects/post:1").json(&json!({"status": "draft", "attributes": {"secret": false}})).ok().await;
    let path = edge("like", "post:1", "alice");
    let problem = client.put(&path).problem(403, "condition_failed").await;
    assert!(!problem.to_string().contains("published"), "{problem} shows the condition");
    client.put(&edge("like", "post:none", "alice")).problem(403, "condition_failed").await;
    client.put("/v1/objects/post:1").json(&json!({"status": "published", "attributes": {"secret": false}})).ok().await;
    client.put(&path).json(&json!({"meta": {"keep": true}})).ok().await;
    client.put(&edge("like", "post:1", "banned")).problem(403, "condition_failed").await;
    client.delete(&path).problem(403, "condition_failed").await;
    client.post(&format!("{path}/toggle")).problem(403, "condition_failed").await;
    assert_eq!(client.get(&path).ok().await["active"], true);
    assert_eq!(client.subjects("like", "post:1").await, ["alice"]);
    client.put("/v1/objects/post:1").json(&json!({"status": "published", "attributes": {"secret": true}})).ok().await;
    client.get(&path).problem(403, "condition_failed").await;
    client.get("/v1/relations/like/post:1").problem(403, "condition_failed").await;
    client.get("/v1/relations/like/post:1/subjects").problem(403, "condition_failed").await;
    let feed = client.post("/v1/read").json(&json!({"objects": ["post:1"], "relations": ["like"]})).ok().await;
    assert_eq!(feed["items"][0]["relations"], json!({}), "what may not be read is left out of a feed");
}

#[tokio::test]
async fn a_condition_that_errs_denies() {
    let config = r#"
        [relations.missing]
        when.relate = "object.attributes.no_such_thing == 1"
        [relations.number]
        when.relate = "meta.n + meta.n"
        [relations.division]
        when.relate = "1 / (meta.n - meta.n) == 1"
        [relations.claims]
        when.relate = "auth.claims.verified"
    "#;
    let server = Server::start(config).await;
    let client = server.client();
    for relation in ["missing", "number", "division", "claims"] {
        with_meta(&client, relation, json!({"n": 1})).await.problem(403, "condition_failed");
    }
    assert_eq!(client.verified().await, 0);
}
