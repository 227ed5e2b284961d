//! Limits: may this happen now?

use futures_util::future::join_all;

use crate::support::*;

const POSTING: &str = "/v1/limits/posting/alice";

fn limit(rate: &str, algorithm: &str) -> String {
    format!("[limits.posting]\nrate = \"{rate}\"\nalgorithm = \"{algorithm}\"\n")
}

#[tokio::test]
async fn of_a_thousand_at_once_exactly_a_hundred_pass() {
    for algorithm in ["sliding_log", "sliding_window", "token_bucket"] {
        let server = Server::start(&limit("100/hour", algorithm)).await;
        let client = server.client();
        let answers = join_all((0..1_000).map(|_| client.post(POSTING).send())).await;
        let passed = answers.iter().filter(|answer| answer.status == 200).count();
        let refused = answers.iter().filter(|answer| answer.status == 429).count();
        assert_eq!((passed, refused), (100, 900), "{algorithm}");
        assert_eq!(client.get(POSTING).ok().await["remaining"], 0);
        assert_eq!(client.post("/v1/limits/posting/bob").ok().await["remaining"], 99, "each its own");
    }
}

#[tokio::test]
async fn both_answers_say_how_it_stands() {
    let server = Server::start(&limit("2/min", "sliding_log")).await;
    let client = server.client();
    let first = client.post(POSTING).send().await;
    let body = first.json();
    assert_eq!((&body["allowed"], &body["remaining"]), (&json!(true), &json!(1)));
    assert_eq!((&body["amount"], &body["window_ms"], &body["reset_ms"]), (&json!(2), &json!(60_000), &json!(60_000)));
    assert_eq!(first.header("ratelimit"), Some("\"posting\";r=1;t=60"));
    assert_eq!(first.header("ratelimit-policy"), Some("\"posting\";q=2;w=60"));
    assert_eq!(first.header("retry-after"), None);
    client.post(POSTING).ok().await;
    let refused = client.post(POSTING).send().await;
    refused.problem(429, "rate_limited");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(refused.header("ratelimit").unwrap().starts_with("\"posting\";r=0;t="), "{refused:?}");
    assert_eq!(refused.header("ratelimit-policy"), Some("\"posting\";q=2;w=60"));
    let look = client.get(POSTING).send().await;
    assert_eq!((look.status, &look.json()["remaining"]), (200, &json!(0)));
    assert_eq!(look.header("ratelimit-policy"), Some("\"posting\";q=2;w=60"));
    let metrics = client.get("/metrics").send().await.text();
    assert!(metrics.contains("tally_http_problems_total{code=\"rate_limited\"} 1"), "{metrics}");
    assert!(metrics.contains("resource=\"limits\",status=\"429\""), "{metrics}");
}

#[tokio::test]
async fn what_is_refused_looked_at_or_replayed_costs_nothing() {
    let server = Server::start(&limit("10/hour", "sliding_log")).await;
    let client = server.client();
    let take = |cost: u64| client.post(POSTING).json(&json!({"cost": cost}));
    assert_eq!(take(7).ok().await["remaining"], 3);
    take(4).problem(429, "rate_limited").await;
    assert_eq!(client.get(POSTING).ok().await["remaining"], 3);
    let keyed = || take(2).header("idempotency-key", "k").send();
    for answer in join_all((0..20).map(|_| keyed())).await {
        assert_eq!((answer.status, &answer.json()["remaining"]), (200, &json!(1)), "{}", answer.text());
    }
    assert_eq!(client.get(POSTING).ok().await["remaining"], 1);
    // A refusal is not remembered: the same call may pass later.
    let refused = take(2).header("idempotency-key", "later").send().await;
    refused.problem(429, "rate_limited");
    let again = take(2).header("idempotency-key", "later").send().await;
    again.problem(429, "rate_limited");
    assert_eq!(again.header("idempotent-replayed"), None);
}

#[tokio::test]
async fn a_like_passes_its_limit_in_the_same_step() {
    let server = Server::start("[relations.like]\nrate_limit = \"3/hour per subject\"\n").await;
    let client = server.client();
    let like = |n: usize, who: &str| client.put(&edge("like", &format!("post:{n}"), who)).send();
    let answers = join_all((0..20).map(|n| like(n, "alice"))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 3);
    let refused = answers.iter().find(|answer| answer.status != 200).unwrap();
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("ratelimit-policy"), Some("\"relations.like\";q=3;w=3600"));
    assert!(refused.header("retry-after").is_some());
    let liked = client.objects("like", "alice").await;
    assert_eq!(liked.len(), 3, "a refused one was not made");
    let again = client.put(&edge("like", &liked[0], "alice")).ok().await;
    assert_eq!(again["changed"], false, "what changes nothing passes");
    assert_eq!(like(1, "bob").await.status, 200, "each subject its own");
    assert_eq!(client.verified().await, 4);
}

#[tokio::test]
async fn one_limit_may_stand_before_several_things() {
    let config = r#"
        [limits.acting]
        rate = "4/hour"
        [relations.like]
        rate_limit = "acting per subject"
        [attendance.daily]
        rate_limit = "acting"
        [boards.points]
        rate_limit = "acting per member"
        [counters.views]
        rate_limit = "1/hour per key"
        [counters.all]
        rate_limit = "1/hour in all"
    "#;
    let server = Server::start(config).await;
    let client = server.client();
    client.like("post:1", "alice").await;
    client.put("/v1/attendance/daily/2026-01-01/alice").ok().await;
    client.put("/v1/boards/points/alice").json(&json!({"score": 1})).ok().await;
    assert_eq!(client.post("/v1/limits/acting/alice").ok().await["remaining"], 0);
    client.put("/v1/attendance/daily/2026-01-02/alice").problem(429, "rate_limited").await;
    client.put("/v1/boards/points/alice").json(&json!({"score": 2})).problem(429, "rate_limited").await;
    assert_eq!(client.get("/v1/boards/points/alice").ok().await["score"], 1);
    assert_eq!(client.get("/v1/attendance/daily/2026-01-02").ok().await["count"], 0);

    client.post("/v1/counters/views/a").ok().await;
    client.post("/v1/counters/views/a").problem(429, "rate_limited").await;
    client.post("/v1/counters/views/b").ok().await;
    client.post("/v1/counters/all/a").ok().await;
    client.post("/v1/counters/all/b").problem(429, "rate_limited").await;
    assert_eq!(client.get("/v1/counters/all/b").ok().await["value"], 0);
}

#[tokio::test]
async fn a_limit_survives_a_restart() {
    let mut server = Server::start(&limit("3/hour", "token_bucket")).await;
    server.client().post(POSTING).json(&json!({"cost": 2})).ok().await;
    server.kill();
    server.restart().await;
    let client = server.client();
    assert_eq!(client.post(POSTING).ok().await["remaining"], 0);
    client.post(POSTING).problem(429, "rate_limited").await;
}
