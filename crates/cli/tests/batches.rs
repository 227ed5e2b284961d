//! Many commands in one request, and one effect however often it is sent.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

mod support;

use futures_util::future::join_all;
use support::*;

fn relate(object: &str, subject: &str) -> Value {
    json!({"op": "relate", "relation": "like", "object": object, "subject": subject})
}

fn unrelate(object: &str, subject: &str) -> Value {
    json!({"op": "unrelate", "relation": "like", "object": object, "subject": subject})
}

fn fans(count: usize) -> Vec<Value> {
    (0..count).map(|n| relate("post:1", &format!("fan-{n}"))).collect()
}

fn post(client: &Client, atomic: bool, commands: &[Value]) -> client::Asked {
    client.post("/v1/batch").json(&json!({"atomic": atomic, "commands": commands}))
}

#[tokio::test]
async fn an_atomic_batch_does_all_in_order_each_seeing_those_before() {
    let server = Server::start("").await;
    let client = server.client();
    let toggle = json!({"op": "toggle", "relation": "like", "object": "post:1", "subject": "carol"});
    let commands = [
        relate("post:1", "alice"),
        relate("post:1", "bob"),
        relate("post:1", "alice"),
        unrelate("post:1", "alice"),
        toggle.clone(),
        toggle,
    ];
    let results = post(&client, true, &commands).ok().await["results"].as_array().unwrap().clone();
    let told: Vec<(bool, i64)> =
        results.iter().map(|r| (r["changed"].as_bool().unwrap(), r["count"].as_i64().unwrap())).collect();
    assert_eq!(told, [(true, 1), (true, 2), (false, 2), (true, 1), (true, 2), (true, 1)]);
    assert_eq!(client.subjects("like", "post:1").await, ["bob"]);
    assert_eq!(post(&client, true, &[]).ok().await, json!({"results": []}));
    let unsaid = client.post("/v1/batch").json(&json!({"commands": [relate("post:2", "alice"), {"op": "fly"}]}));
    unsaid.problem(409, "batch_refused").await;
}

#[tokio::test]
async fn a_refused_command_refuses_the_whole_atomic_batch_and_is_named() {
    let config = "[relations.favorite]\nlimit_per_subject = 1\n[relations.bookmark]\nrequires_object = true\n";
    let server = Server::start(config).await;
    let client = server.client();
    client.put(&edge("like", "post:9", "alice")).json(&json!({"meta": {"n": 1}})).ok().await;
    let of = |relation: &str, object: &str| json!({"op": "relate", "relation": relation, "object": object, "subject": "alice"});
    let with_meta =
        json!({"op": "relate", "relation": "like", "object": "post:9", "subject": "alice", "meta": {"n": 2}});
    let cases = [
        (vec![of("like", "post:1"), of("likes", "post:1")], 1, "relation_not_found"),
        (vec![of("like", "post:1"), of("like", "post:2"), of("bookmark", "post:1")], 2, "object_not_found"),
        (vec![of("favorite", "post:1"), of("favorite", "post:2")], 1, "limit_exceeded"),
        (vec![with_meta, of("like", "post:1")], 0, "immutable"),
        (vec![of("like", "post:1"), json!({"op": "fly"})], 1, "bad_request"),
        (vec![of("like", "post:1"), json!(["relate", "like", "post:2", "alice"])], 1, "bad_request"),
        (vec![of("like", "post:1"), of("like", "nonsense")], 1, "bad_request"),
        (vec![of("like", "post:1"), json!({"op": "batch", "commands": []})], 1, "bad_request"),
    ];
    for (commands, index, cause) in cases {
        let problem = post(&client, true, &commands).problem(409, "batch_refused").await;
        assert_eq!((&problem["index"], &problem["cause"]), (&json!(index), &json!(cause)), "{problem}");
    }
    assert_eq!(client.verified().await, 1, "nothing of any of them took effect");
}

#[tokio::test]
async fn without_atomic_each_command_stands_on_its_own_in_order() {
    let server = Server::start("").await;
    let client = server.client();
    let commands = [
        relate("post:1", "alice"),
        json!({"op": "relate", "relation": "nope", "object": "post:1", "subject": "alice"}),
        json!("nonsense"),
        relate("post:1", "alice"),
        relate("nonsense", "alice"),
        unrelate("post:1", "alice"),
        relate("post:1", "bob"),
    ];
    let answer = post(&client, false, &commands).send().await;
    assert_eq!(answer.status, 200);
    let results = answer.json()["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), commands.len());
    let told: Vec<Value> = results.iter().map(|r| r.get("code").or(r.get("changed")).unwrap().clone()).collect();
    let expected = json!([true, "relation_not_found", "bad_request", false, "bad_request", true, true]);
    assert_eq!(Value::from(told), expected);
    assert_eq!((&results[1]["status"], &results[2]["status"]), (&json!(404), &json!(400)));
    assert_eq!(client.subjects("like", "post:1").await, ["bob"]);
}

#[tokio::test]
async fn ten_thousand_commands_keep_their_order() {
    let server = Server::start("").await;
    let client = server.client();
    let commands: Vec<Value> =
        (0..10_000).map(|n| if n % 2 == 0 { relate("post:1", "alice") } else { unrelate("post:1", "alice") }).collect();
    let answer = post(&client, false, &commands).send().await;
    let results = answer.json()["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 10_000);
    for (n, result) in results.iter().enumerate() {
        assert_eq!((&result["changed"], &result["active"]), (&json!(true), &json!(n % 2 == 0)), "{n}");
    }
    assert_eq!(client.verified().await, 0);
}

#[tokio::test]
async fn batches_are_bounded() {
    let server = Server::start("").await;
    let client = server.client();
    assert_eq!(post(&client, true, &fans(500)).ok().await["results"].as_array().unwrap().len(), 500);
    post(&client, true, &fans(501)).problem(413, "too_large").await;
    let one_too_many = vec![relate("post:2", "a"); 10_001];
    post(&client, false, &one_too_many).problem(413, "too_large").await;
    let mut body = json!({"commands": fans(1)}).to_string();
    body.push_str(&" ".repeat((8 << 20) - body.len()));
    client.post("/v1/batch").body("application/json", body).ok().await;
    assert_eq!((client.count("like", "post:1").await, client.count("like", "post:2").await), (500, 0));
}

#[tokio::test]
async fn a_toggle_with_a_key_flips_once_however_often_it_is_sent() {
    let server = Server::start("").await;
    let client = server.client();
    let path = format!("{}/toggle", edge("like", "post:1", "alice"));
    let answers = join_all((0..50).map(|_| client.post(&path).header("idempotency-key", "k-1").send())).await;
    let first = answers.iter().find(|answer| answer.header("idempotent-replayed").is_none()).unwrap();
    for answer in &answers {
        assert_eq!((answer.status, answer.json()), (200, first.json()), "the same answer for all");
    }
    assert_eq!(answers.iter().filter(|answer| answer.header("idempotent-replayed") == Some("true")).count(), 49);
    assert_eq!(client.count("like", "post:1").await, 1);
    let other = client.post(&path).header("idempotency-key", "k-2").ok().await;
    assert_eq!(other["active"], false, "another key is another request");
}

#[tokio::test]
async fn fifty_equal_batches_at_once_have_one_effect() {
    let server = Server::start("").await;
    let client = server.client();
    for (atomic, size) in [(true, 20), (false, 20), (false, 1_200)] {
        let key = format!("k-{atomic}-{size}");
        let commands: Vec<Value> = (0..size)
            .map(|n| json!({"op": "toggle", "relation": "like", "object": format!("post:{key}"), "subject": format!("fan-{n}")}))
            .collect();
        let send = || post(&client, atomic, &commands).header("idempotency-key", &key).send();
        let rounds = if size > 500 { 6 } else { 50 };
        let answers = join_all((0..rounds).map(|_| send())).await;
        for answer in &answers {
            assert_eq!((answer.status, answer.json()), (200, answers[0].json()));
        }
        assert!(answers.iter().any(|answer| answer.header("idempotent-replayed").is_none()));
        assert_eq!(send().await.header("idempotent-replayed"), Some("true"));
        assert_eq!(client.count("like", &format!("post:{key}")).await, size as i64);
    }
}

#[tokio::test]
async fn a_key_that_is_reused_for_another_request_is_refused_and_says_what_differs() {
    let server = Server::start("").await;
    let client = server.client();
    let path = format!("{}/toggle", edge("like", "post:1", "alice"));
    client.post(&path).header("idempotency-key", "k").json(&json!({"meta": {"n": 1}})).ok().await;
    let reused = async |request: client::Asked, field: &str| {
        let problem = request.header("idempotency-key", "k").problem(422, "idempotency_key_reused").await;
        assert!(problem["detail"].as_str().unwrap().contains(field), "{field}: {problem}");
    };
    reused(client.post(&path).json(&json!({"meta": {"n": 2}})), "meta").await;
    reused(client.post(&path).json(&json!({"meta": {"n": 1, "more": 1}})), "body.meta.more").await;
    reused(client.post(&path).json(&json!({"meta": {}})), "body.meta").await;
    reused(client.post(&path), "body.meta").await;
    let same = client.post(&path).body("application/json", " {\"meta\" : {\"n\":1} }").header("idempotency-key", "k");
    assert_eq!(same.send().await.header("idempotent-replayed"), Some("true"));
    let other = format!("{}/toggle", edge("like", "post:2", "alice"));
    reused(client.post(&other).json(&json!({"meta": {"n": 1}})), "call").await;
    reused(post(&client, true, &fans(1)), "call").await;
    assert_eq!(client.verified().await, 1);
}

#[tokio::test]
async fn a_reused_key_does_nothing_of_a_longer_shorter_or_otherwise_atomic_batch() {
    let server = Server::start("").await;
    let client = server.client();
    let keyed = |atomic, commands: &[Value]| post(&client, atomic, commands).header("idempotency-key", "k");
    keyed(false, &fans(600)).ok().await;
    let problem = keyed(false, &fans(1_700)).problem(422, "idempotency_key_reused").await;
    assert!(problem["detail"].as_str().unwrap().contains("commands[600]"), "{problem}");
    keyed(false, &fans(10)).problem(422, "idempotency_key_reused").await;
    let problem = keyed(true, &fans(300)).problem(422, "idempotency_key_reused").await;
    assert!(problem["detail"].as_str().unwrap().contains("atomic"), "{problem}");
    assert_eq!(client.count("like", "post:1").await, 600);
}

#[tokio::test]
async fn refusals_are_remembered_too() {
    let server = Server::start("").await;
    let client = server.client();
    let commands = [relate("post:1", "alice"), relate("post:1", "suspended")];
    let job = client.post("/v1/subjects/suspended/suspend").status(202).await;
    client.job_done(&job).await;
    let send = || post(&client, true, &commands).header("idempotency-key", "k").send();
    send().await.problem(409, "batch_refused");
    let job = client.post("/v1/subjects/suspended/restore").status(202).await;
    client.job_done(&job).await;
    let again = send().await;
    assert_eq!(again.problem(409, "batch_refused")["index"], 1);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(client.count("like", "post:1").await, 0);
}

#[tokio::test]
async fn a_key_belongs_to_its_caller_and_survives_a_restart() {
    let mut server = Server::start("").await;
    let admin = server.client();
    let made = admin.post("/v1/keys").json(&json!({"role": "service"})).status(201).await;
    let service = made["key"].as_str().unwrap().to_owned();
    let path = format!("{}/toggle", edge("like", "post:1", "alice"));
    let flip = async |client: &Client| client.post(&path).header("idempotency-key", "same").send().await;
    let first = flip(&admin).await.json();
    assert_eq!(flip(&server.client_as(Some(&service))).await.json()["active"], false, "another caller's own");
    server.stop().await;
    server.restart().await;
    let again = flip(&server.client()).await;
    assert_eq!((again.header("idempotent-replayed"), again.json()), (Some("true"), first));
    assert_eq!(flip(&server.client_as(Some(&service))).await.header("idempotent-replayed"), Some("true"));
    assert_eq!(server.client().count("like", "post:1").await, 0);
}

#[tokio::test]
async fn a_key_is_1_to_128_visible_characters() {
    let server = Server::start("").await;
    let client = server.client();
    let path = format!("{}/toggle", edge("like", "post:1", "alice"));
    for bad in ["", "with space", &"x".repeat(129), "ключ"] {
        client.post(&path).header("idempotency-key", bad).problem(400, "bad_request").await;
    }
    client.post(&path).header("idempotency-key", &"x".repeat(128)).ok().await;
    assert_eq!(client.count("like", "post:1").await, 1);
}

#[tokio::test]
async fn an_answer_far_larger_than_its_request_is_remembered_as_given_but_not_whole() {
    let server = Server::start("").await;
    let client = server.client();
    let meta = json!({"text": "x".repeat(12_000)});
    client.put(&edge("like", "post:1", "alice")).json(&json!({"meta": meta})).ok().await;
    // The edge is there already: a hundred bytes are answered with all of its meta.
    let send = |atomic: bool, key: &'static str| {
        let commands = [relate("post:1", "alice"), json!({"op": "count", "counter": "views", "key": "post:1"})];
        post(&client, atomic, &commands).header("idempotency-key", key).send()
    };
    for (atomic, key) in [(true, "a"), (false, "b")] {
        let first = send(atomic, key).await;
        assert_eq!((first.status, &first.json()["results"][0]["meta"]), (200, &meta));
        let again = send(atomic, key).await;
        let problem = again.problem(409, "conflict");
        assert!(problem["detail"].as_str().unwrap().contains("Idempotency-Key"), "{problem}");
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
    }
    assert_eq!(client.get("/v1/counters/views/post:1").ok().await["value"], 2, "each was done once");

    // What only gives back what was sent is remembered whole, and so is a full batch.
    let toggle = || {
        let asked = client.post(&format!("{}/toggle", edge("like", "post:2", "alice"))).json(&json!({"meta": meta}));
        asked.header("idempotency-key", "c").send()
    };
    assert_eq!(toggle().await.json(), toggle().await.json());
    let many: Vec<Value> =
        (0..500).map(|n| relate("post:3", &format!("somebody-with-a-name-of-some-length-{n}"))).collect();
    let full = || post(&client, true, &many).header("idempotency-key", "d").send();
    assert_eq!(full().await.json(), full().await.json());
}

#[tokio::test]
async fn only_so_much_is_remembered_for_one_user_in_an_hour() {
    let issuer = tokens::Issuer::new();
    let server = Server::start(&format!("{}[idempotency]\nuser_bytes_max = 4096\n", issuer.config())).await;
    let flip = async |client: &Client, subject: &str, key: &str| {
        let path = format!("{}/toggle", edge("like", "post:1", subject));
        client.post(&path).header("idempotency-key", key).send().await
    };
    let alice = server.client_as(Some(&tokens::user("alice")));
    let mut refused = None;
    for number in 0..20 {
        let answer = flip(&alice, "alice", &format!("k{number}")).await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("there is an end to it");
    refused.problem(429, "rate_limited");
    assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() > 1);
    assert_eq!(
        flip(&server.client_as(Some(&tokens::user("bob"))), "bob", "k").await.status,
        200,
        "others have their own"
    );
    assert_eq!(alice.like("post:2", "alice").await["changed"], true, "what needs no memory goes on");
    assert_eq!(flip(&server.client(), "carol", "k").await.status, 200);
}

#[tokio::test]
async fn a_key_that_paid_for_little_is_not_good_for_much() {
    let issuer = tokens::Issuer::new();
    let server = Server::start(&format!("{}[idempotency]\nuser_bytes_max = 65536\n", issuer.config())).await;
    let alice = server.client_as(Some(&tokens::user("alice")));
    let keyed = |key: &'static str, commands: &[Value]| post(&alice, false, commands).header("idempotency-key", key);
    let mine: Vec<Value> = (0..400).map(|n| relate(&format!("post:{n}"), "me")).collect();
    for key in ["a", "b"] {
        keyed(key, &[]).ok().await;
    }
    keyed("a", &mine).ok().await;
    keyed("b", &mine).problem(429, "rate_limited").await;
    assert_eq!(keyed("a", &mine).send().await.header("idempotent-replayed"), Some("true"));
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_and_not_remembered() {
    let server = Server::start("[uniques.dau]\n").await;
    let client = server.client();
    let path = format!("{}/toggle", edge("like", "post:1", "alice"));
    let toggle = |meta: &serde_json::Map<String, Value>| {
        client.post(&path).header("idempotency-key", "k").json(&json!({"meta": meta}))
    };
    let many = (0..50_000).map(|n| (format!("{n:x}"), json!(0))).collect();
    for _ in 0..2 {
        toggle(&many).problem(413, "too_large").await;
    }
    let few = serde_json::Map::from_iter([("a".to_owned(), json!(1))]);
    assert_eq!(toggle(&few).ok().await["changed"], true);
    assert_eq!(toggle(&few).send().await.header("idempotent-replayed"), Some("true"));
    let members: Vec<String> = (0..1_001).map(|n| format!("{n}")).collect();
    let observe = |members: &[String]| {
        client.post("/v1/uniques/dau/today").header("idempotency-key", "m").json(&json!({"members": members}))
    };
    observe(&members).problem(413, "too_large").await;
    observe(&members[..1_000]).ok().await;
    let problem = observe(&members[..999]).problem(422, "idempotency_key_reused").await;
    assert!(problem["detail"].as_str().unwrap().contains("body.members"), "{problem}");
}
