//! The situations that Tally was made for: the same requests over and over, at once, from everywhere.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

mod support;

use std::collections::HashMap;

use futures_util::future::join_all;
use support::*;

/// How many of these answers changed something.
fn changed(answers: &[Value]) -> usize {
    answers.iter().filter(|answer| answer["changed"] == true).count()
}

/// The edge as its own answer, the count and both lists tell it: all four must agree.
async fn agreed_state(client: &Client, object: &str, subject: &str) -> bool {
    let active = client.get(&edge("like", object, subject)).ok().await["active"].as_bool().unwrap();
    let expected: &[&str] = if active { &[subject] } else { &[] };
    assert_eq!(client.count("like", object).await, expected.len() as i64);
    assert_eq!(client.subjects("like", object).await, expected);
    assert_eq!(client.objects("like", subject).await, if active { vec![object] } else { vec![] });
    active
}

#[tokio::test]
async fn a_hundred_likes_at_once_from_one_subject_are_one_like() {
    let server = Server::start("").await;
    let client = server.client();
    let answers = join_all((0..100).map(|_| client.put(&edge("like", "post:1", "alice")).send())).await;
    let costs: Vec<(u32, u32)> = answers.iter().map(Answer::cost).collect();
    let bodies: Vec<Value> = answers.iter().map(Answer::json).collect();
    assert_eq!(changed(&bodies), 1);
    assert!(bodies.iter().all(|body| body["count"] == 1 && body["created_at"] == bodies[0]["created_at"]));
    assert_eq!(costs.iter().map(|(_, writes)| writes).sum::<u32>(), 2, "one pair of writes");
    assert_eq!(costs.iter().map(|(reads, _)| reads).sum::<u32>(), 2 + 99);
    assert!(agreed_state(&client, "post:1", "alice").await);
    assert_eq!(client.verified().await, 1);
}

#[tokio::test]
async fn likes_and_unlikes_at_once_end_in_one_consistent_state() {
    let server = Server::start("").await;
    let client = server.client();
    for round in 0..10 {
        let (object, subject) = (format!("post:{round}"), format!("alice-{round}"));
        let path = edge("like", &object, &subject);
        let requests = (0..40).map(|n| if n % 2 == 0 { client.put(&path).ok() } else { client.delete(&path).ok() });
        let answers = join_all(requests).await;
        let of = |active: bool| {
            let side: Vec<Value> = answers.iter().filter(|answer| answer["active"] == active).cloned().collect();
            changed(&side)
        };
        let active = agreed_state(&client, &object, &subject).await;
        assert_eq!(of(true) - of(false), usize::from(active), "every change is the opposite of the one before");
    }
    client.verified().await;
}

#[tokio::test]
async fn two_users_at_once_are_two_likes() {
    let server = Server::start("").await;
    let client = server.client();
    for round in 0..20 {
        let object = format!("post:{round}");
        let (alice, bob) = tokio::join!(client.like(&object, "alice"), client.like(&object, "bob"));
        assert_eq!((&alice["changed"], &bob["changed"]), (&json!(true), &json!(true)));
        let counts = [alice["count"].as_i64().unwrap(), bob["count"].as_i64().unwrap()];
        assert_eq!((counts.iter().min(), counts.iter().max()), (Some(&1), Some(&2)));
        assert_eq!(client.count("like", &object).await, 2);
    }
    assert_eq!(client.verified().await, 40);
}

#[tokio::test]
async fn a_bot_that_likes_over_and_over_adds_nothing() {
    let server = Server::start("").await;
    let client = server.client();
    client.like("post:1", "bot").await;
    let before = server_writes(&client).await;
    let bots = (0..16).map(|_| async {
        for _ in 0..40 {
            let again = client.put(&edge("like", "post:1", "bot")).send().await;
            assert_eq!(again.cost(), (1, 0));
            assert_eq!((&again.json()["changed"], &again.json()["count"]), (&json!(false), &json!(1)));
        }
    });
    join_all(bots).await;
    assert_eq!(server_writes(&client).await, before);
    assert!(agreed_state(&client, "post:1", "bot").await);
}

/// What a recount sees: edges and totals in the store.
async fn server_writes(client: &Client) -> (Value, Value) {
    let report = client.verify(false).await;
    (report["edges"].clone(), report["totals"].clone())
}

#[tokio::test]
async fn a_thousand_adds_at_once_against_a_limit_of_one_leave_exactly_one() {
    let server = Server::start("[relations.favorite]\nlimit_per_subject = 1\n").await;
    let client = server.client();
    let answers =
        join_all((0..1_000).map(|n| client.put(&edge("favorite", &format!("post:{n}"), "alice")).send())).await;
    let taken: Vec<Value> = answers.iter().filter(|answer| answer.status == 200).map(Answer::json).collect();
    assert_eq!(taken.len(), 1);
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        refused.problem(409, "limit_exceeded");
    }
    let listed = client.objects("favorite", "alice").await;
    assert_eq!(listed, [taken[0]["object"].as_str().unwrap()]);
    assert_eq!(client.verified().await, 1);
}

#[tokio::test]
async fn racing_toggles_flip_once_each() {
    let server = Server::start("").await;
    let client = server.client();
    let path = format!("{}/toggle", edge("like", "post:1", "alice"));
    let answers = join_all((0..51).map(|_| client.post(&path).ok())).await;
    assert_eq!(changed(&answers), 51);
    assert_eq!(answers.iter().filter(|answer| answer["active"] == true).count(), 26);
    assert!(agreed_state(&client, "post:1", "alice").await, "an odd number of flips");
}

#[tokio::test]
async fn sixty_four_clients_sending_the_same_likes_make_each_of_them_once() {
    const CLIENTS: usize = 64;
    const SUBJECTS: usize = 50;
    const OBJECTS: usize = 40;
    let server = Server::start("").await;
    let admin = server.client();
    // Everyone sends all 2,000 in batches, each in an order of its own, and some of them singly as well.
    let sent = (0..CLIENTS).map(|number| {
        let client = server.client();
        async move {
            let mut made: Vec<(String, String)> = Vec::new();
            let edges: Vec<(usize, usize)> = (0..SUBJECTS * OBJECTS)
                .map(|n| (n * 7 + number * 31) % (SUBJECTS * OBJECTS))
                .map(|n| (n / SUBJECTS, n % SUBJECTS))
                .collect();
            for chunk in edges.chunks(500) {
                let commands: Vec<Value> = chunk
                    .iter()
                    .map(|(object, subject)| {
                        json!({"op": "relate", "relation": "like",
                               "object": format!("post:{object}"), "subject": format!("fan-{subject}")})
                    })
                    .collect();
                let body = json!({"atomic": number % 2 == 0, "commands": commands});
                let mut answers =
                    client.post("/v1/batch").json(&body).ok().await["results"].as_array().unwrap().clone();
                let (object, subject) = chunk[0];
                answers.push(client.like(&format!("post:{object}"), &format!("fan-{subject}")).await);
                made.extend(answers.iter().filter(|answer| answer["changed"] == true).map(|answer| {
                    let text = |name: &str| answer[name].as_str().unwrap().to_owned();
                    (text("object"), text("subject"))
                }));
            }
            made
        }
    });
    let mut times_changed: HashMap<(String, String), u32> = HashMap::new();
    for made in join_all(sent).await {
        for edge in made {
            *times_changed.entry(edge).or_default() += 1;
        }
    }
    assert_eq!(times_changed.len(), SUBJECTS * OBJECTS, "every edge was made");
    assert!(times_changed.values().all(|times| *times == 1), "and only once");
    for object in 0..OBJECTS {
        let object = format!("post:{object}");
        assert_eq!(admin.count("like", &object).await, SUBJECTS as i64);
        assert_eq!(admin.subjects("like", &object).await.len(), SUBJECTS);
    }
    assert_eq!(admin.verified().await, (SUBJECTS * OBJECTS) as u64);
}

#[tokio::test]
async fn an_object_deleted_while_it_is_bookmarked_keeps_nothing() {
    let server = Server::start("[relations.bookmark]\nrequires_object = true\n").await;
    let client = server.client();
    client.put("/v1/objects/post:1").ok().await;
    let bookmarks = join_all((0..200).map(|n| client.put(&edge("bookmark", "post:1", &format!("fan-{n}"))).send()));
    let (answers, job) = tokio::join!(bookmarks, client.delete("/v1/objects/post:1").status(202));
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        refused.problem(404, "object_not_found");
    }
    client.job_done(&job).await;
    assert_eq!(
        client.count("bookmark", "post:1").await,
        0,
        "a check that was passed before the deletion came too late"
    );
    assert_eq!(client.verified().await, 0);
}
