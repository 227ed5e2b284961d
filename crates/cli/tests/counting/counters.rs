//! Counters: how many times?

use futures_util::future::join_all;

use crate::support::*;

const VIEWS: &str = "/v1/counters/views/post:1";

async fn value(client: &Client, path: &str) -> i64 {
    client.get(path).ok().await["value"].as_i64().unwrap()
}

#[tokio::test]
async fn a_counter_is_added_to_and_read() {
    let server = Server::start("").await;
    let client = server.client();
    let add = async |by: i64| client.post(VIEWS).json(&json!({"by": by})).ok().await;
    assert_eq!(
        client.post(VIEWS).ok().await,
        json!({"counter": "views", "key": "post:1", "value": 1, "changed": true})
    );
    assert_eq!(client.post(VIEWS).json(&json!({})).ok().await["value"], 2);
    assert_eq!(add(10).await["value"], 12);
    assert_eq!(add(-20).await["value"], -8);
    let nothing = add(0).await;
    assert_eq!((&nothing["value"], &nothing["changed"]), (&json!(-8), &json!(false)));
    let read = client.get(VIEWS).ok().await;
    assert_eq!(read["value"], -8);
    assert!(read["as_of"].as_str().is_some_and(|time| time.ends_with('Z')), "{read}");
    assert_eq!(value(&client, "/v1/counters/views/never").await, 0);
    let answer = client.post(VIEWS).send().await;
    assert_eq!(answer.cost(), (1, 1));
    client.verified().await;
}

#[tokio::test]
async fn what_would_overflow_is_refused_and_counts_nothing() {
    let server = Server::start("").await;
    let client = server.client();
    client.post(VIEWS).json(&json!({"by": i64::MAX})).ok().await;
    let refused = client.post(VIEWS).send().await;
    assert!((400..500).contains(&refused.status), "{}", refused.text());
    assert!(refused.json()["detail"].as_str().unwrap().contains("overflow"), "{}", refused.text());
    assert_eq!(value(&client, VIEWS).await, i64::MAX);
}

#[tokio::test]
async fn many_at_once_are_all_counted() {
    let server = Server::start("").await;
    let client = server.client();
    join_all((0..400).map(|_| client.post(VIEWS).ok())).await;
    assert_eq!(value(&client, VIEWS).await, 400);
    client.verified().await;
}

#[tokio::test]
async fn the_same_key_fifty_times_at_once_counts_once() {
    let server = Server::start("").await;
    let client = server.client();
    let send = || client.post(VIEWS).json(&json!({"by": 7})).header("idempotency-key", "k").send();
    let answers = join_all((0..50).map(|_| send())).await;
    for answer in &answers {
        assert_eq!((answer.status, &answer.json()["value"]), (200, &json!(7)), "{}", answer.text());
    }
    let fresh = answers.iter().filter(|answer| answer.header("idempotent-replayed").is_none()).count();
    assert_eq!(fresh, 1, "one of them did it");
    assert_eq!(value(&client, VIEWS).await, 7);

    let keyed = |path: &str, by: i64| client.post(path).json(&json!({"by": by})).header("idempotency-key", "k");
    let problem = keyed(VIEWS, 8).problem(422, "idempotency_key_reused").await;
    assert!(problem["detail"].as_str().unwrap().contains("body.by"), "{problem}");
    let problem = keyed("/v1/counters/views/post:2", 7).problem(422, "idempotency_key_reused").await;
    assert!(problem["detail"].as_str().unwrap().contains("the call"), "{problem}");
    client.post(VIEWS).header("idempotency-key", "with space").problem(400, "bad_request").await;
    assert_eq!(value(&client, VIEWS).await, 7);
}

#[tokio::test]
async fn a_condition_decides_and_the_last_time_is_kept() {
    let config = "[counters.views]\nrequires = 'object.status == \"published\"'\nlast_at = true\n";
    let server = Server::start(config).await;
    let client = server.client();
    let problem = client.post(VIEWS).problem(403, "condition_failed").await;
    assert!(!problem.to_string().contains("published"), "{problem} shows the condition");
    assert_eq!(value(&client, VIEWS).await, 0);
    client.put("/v1/objects/post:1").json(&json!({"status": "published"})).ok().await;
    let counted = client.post(VIEWS).ok().await;
    assert_eq!(counted["value"], 1);
    assert!(counted["last_at"].is_string(), "{counted}");
    assert_eq!(client.get(VIEWS).ok().await["last_at"], counted["last_at"]);
    client.put("/v1/objects/post:1").json(&json!({"status": "draft"})).ok().await;
    client.post(VIEWS).problem(403, "condition_failed").await;
    client.post("/v1/counters/views/no-object").problem(400, "bad_request").await;
    assert_eq!(value(&client, VIEWS).await, 1);
}

#[tokio::test]
async fn a_feed_has_counters_beside_its_relations() {
    let server = Server::start("[counters.shares]\n").await;
    let client = server.client();
    client.like("post:1", "alice").await;
    client.post(VIEWS).json(&json!({"by": 3})).ok().await;
    client.post("/v1/counters/shares/post:2").ok().await;
    let body = json!({"viewer": "alice", "objects": ["post:1", "post:2"], "relations": ["like"], "counters": ["views", "shares"]});
    let feed = client.post("/v1/read").json(&body).ok().await;
    let expected = json!({"items": [
        {"object": "post:1", "relations": {"like": {"count": 1, "active": true}}, "counters": {"views": 3, "shares": 0}},
        {"object": "post:2", "relations": {"like": {"count": 0, "active": false}}, "counters": {"views": 0, "shares": 1}},
    ]});
    assert_eq!(feed, expected);
    let alone = json!({"objects": ["post:1"], "counters": ["views"]});
    assert_eq!(client.post("/v1/read").json(&alone).ok().await["items"][0]["counters"], json!({"views": 3}));
    let wrong = json!({"objects": ["post:1"], "counters": ["view"]});
    client.post("/v1/read").json(&wrong).problem(404, "counter_not_found").await;
}

#[tokio::test]
async fn a_batch_counts_of_every_kind_and_all_or_none() {
    let server = Server::start("[limits.posting]\nrate = \"2/hour\"\n").await;
    let client = server.client();
    let mut commands = vec![
        json!({"op": "relate", "relation": "like", "object": "post:1", "subject": "alice"}),
        json!({"op": "count", "counter": "views", "key": "post:1", "by": 5}),
        json!({"op": "observe", "unique": "dau", "key": "d", "members": ["alice", "bob"]}),
        json!({"op": "attend", "sheet": "daily", "day": "2026-01-01", "subject": "alice"}),
        json!({"op": "score", "board": "points", "member": "alice", "by": 10}),
        json!({"op": "take", "limit": "posting", "key": "alice", "cost": 2}),
    ];
    let answer = client.post("/v1/batch").json(&json!({"commands": commands})).ok().await;
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[1]["value"], 5);
    assert_eq!(results[2]["estimate"], 2);
    assert_eq!((&results[3]["present"], &results[3]["streak"]), (&json!(true), &json!(1)));
    assert_eq!((&results[4]["score"], &results[4]["rank"]), (&json!(10), &json!(1)));
    assert_eq!((&results[5]["allowed"], &results[5]["remaining"]), (&json!(true), &json!(0)));

    commands[0] = json!({"op": "relate", "relation": "like", "object": "post:1", "subject": "bob"});
    let problem = client.post("/v1/batch").json(&json!({"commands": commands})).problem(409, "batch_refused").await;
    assert_eq!((&problem["index"], &problem["cause"]), (&json!(5), &json!("rate_limited")));
    assert_eq!(value(&client, VIEWS).await, 5, "none of it was counted");
    assert_eq!(client.count("like", "post:1").await, 1);
    let each = client.post("/v1/batch").json(&json!({"atomic": false, "commands": commands})).ok().await;
    assert_eq!((&each["results"][1]["value"], &each["results"][5]["code"]), (&json!(10), &json!("rate_limited")));
    client.verified().await;
}
