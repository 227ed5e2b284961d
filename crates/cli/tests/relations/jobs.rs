//! What happens to a subject or an object as a whole: jobs to their end, with every count right.

use std::collections::BTreeMap;

use crate::support::*;

const CONFIG: &str = "[relations.reaction]\nread = \"public\"\none_of = [\"love\", \"wow\"]\n\
                      [relations.favorite]\nlimit_per_subject = 5\n";

/// Alice and bob in every relation with two posts.
async fn world() -> (Server, Client) {
    let server = Server::start(CONFIG).await;
    let client = server.client();
    for subject in ["alice", "bob"] {
        for object in ["post:1", "post:2"] {
            client.put(&edge("like", object, subject)).json(&json!({"meta": {"by": subject}})).ok().await;
            client.put(&edge("favorite", object, subject)).ok().await;
            client.put(&edge("reaction", object, subject)).json(&json!({"kind": "wow"})).ok().await;
        }
    }
    (server, client)
}

/// Every count of the world.
async fn counts(client: &Client) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for object in ["post:1", "post:2"] {
        for relation in ["like", "favorite", "reaction"] {
            counts.insert(format!("{relation} {object}"), client.count(relation, object).await);
        }
        let kinds = client.get(&format!("/v1/relations/reaction/{object}")).ok().await;
        counts.insert(format!("wow {object}"), kinds["kinds"]["wow"].as_i64().unwrap());
    }
    counts
}

#[tokio::test]
async fn forgetting_a_subject_removes_its_edges_everywhere() {
    let (_server, client) = world().await;
    let begun = client.delete("/v1/subjects/alice").status(202).await;
    assert_eq!(begun["kind"], "forget");
    let done = client.job_done(&begun).await;
    assert_eq!((&done["edges"], &done["job"]), (&json!(6), &begun["job"]));
    assert!(done["finished_at"].is_string());
    assert!(counts(&client).await.values().all(|count| *count == 1));
    for relation in ["like", "favorite", "reaction"] {
        assert_eq!(client.objects(relation, "alice").await, Vec::<String>::new());
        assert_eq!(client.subjects(relation, "post:1").await, ["bob"]);
    }
    assert_eq!(client.verified().await, 6);
    assert_eq!(client.like("post:1", "alice").await["changed"], true, "what comes afterwards is a new life");
    let nothing = client.delete("/v1/subjects/nobody").status(202).await;
    assert_eq!(client.job_done(&nothing).await["edges"], 0);
}

#[tokio::test]
async fn deleting_an_object_removes_its_edges_and_counts() {
    let (_server, client) = world().await;
    client.put("/v1/objects/post:1").ok().await;
    let begun = client.delete("/v1/objects/post:1").status(202).await;
    assert_eq!(begun["kind"], "clear");
    assert_eq!(client.job_done(&begun).await["edges"], 6);
    for (name, count) in counts(&client).await {
        assert_eq!(count, if name.ends_with("post:1") { 0 } else { 2 }, "{name}");
    }
    assert_eq!(client.objects("like", "alice").await, ["post:2"]);
    assert_eq!(client.verified().await, 6);
}

#[tokio::test]
async fn suspending_hides_and_restoring_brings_back_with_the_times() {
    let (_server, client) = world().await;
    let before = client.list("/v1/relations/like/post:1/subjects").await;
    let begun = client.post("/v1/subjects/alice/suspend").status(202).await;
    assert_eq!(client.job_done(&begun).await["edges"], 6);
    assert!(counts(&client).await.values().all(|count| *count == 1));
    assert_eq!(client.subjects("like", "post:1").await, ["bob"]);
    assert_eq!(client.objects("like", "alice").await, Vec::<String>::new());
    assert_eq!(client.get(&edge("like", "post:1", "alice")).ok().await, json!({"active": false}));
    client.put(&edge("like", "post:3", "alice")).problem(403, "forbidden").await;
    client.put(&edge("like", "post:1", "alice")).problem(403, "forbidden").await;
    let again = client.post("/v1/subjects/alice/suspend").status(202).await;
    assert_eq!(again["job"], begun["job"], "an answer that was lost is given again");
    client.verified().await;

    let begun = client.post("/v1/subjects/alice/restore").status(202).await;
    assert_eq!(client.job_done(&begun).await["edges"], 6);
    assert!(counts(&client).await.values().all(|count| *count == 2));
    assert_eq!(client.list("/v1/relations/like/post:1/subjects").await, before, "same order, times and meta");
    let again = client.post("/v1/subjects/alice/restore").status(202).await;
    assert_eq!(again["job"], begun["job"]);
    client.post("/v1/subjects/bob/restore").problem(409, "conflict").await;
    assert_eq!(client.like("post:3", "alice").await["changed"], true);
    assert_eq!(client.verified().await, 13);
}

#[tokio::test]
async fn a_suspended_subject_can_be_forgotten_with_all_that_is_hidden() {
    let (_server, client) = world().await;
    let begun = client.post("/v1/subjects/alice/suspend").status(202).await;
    client.job_done(&begun).await;
    let begun = client.delete("/v1/subjects/alice").status(202).await;
    assert_eq!(client.job_done(&begun).await["edges"], 6);
    assert_eq!(client.verified().await, 6);
    assert!(counts(&client).await.values().all(|count| *count == 1));
}

#[tokio::test]
async fn an_unlike_while_suspended_stays_gone_after_the_restore() {
    let (_server, client) = world().await;
    let begun = client.post("/v1/subjects/alice/suspend").status(202).await;
    client.job_done(&begun).await;
    assert_eq!(client.unlike("post:1", "alice").await["count"], 1);
    let begun = client.post("/v1/subjects/alice/restore").status(202).await;
    client.job_done(&begun).await;
    assert_eq!(client.subjects("like", "post:1").await, ["bob"]);
    assert_eq!(client.subjects("like", "post:2").await, ["bob", "alice"]);
    client.verified().await;
}

#[tokio::test]
async fn a_job_of_thousands_of_edges_ends_with_every_count_right() {
    let server = Server::start("").await;
    let client = server.client();
    let commands: Vec<Value> = (0..3_000)
        .map(|n| json!({"op": "relate", "relation": "like", "object": format!("post:{n}"), "subject": "alice"}))
        .collect();
    client.post("/v1/batch").json(&json!({"atomic": false, "commands": commands})).ok().await;
    client.like("post:7", "bob").await;
    let begun = client.delete("/v1/subjects/alice").status(202).await;
    assert_eq!(client.job_done(&begun).await["edges"], 3_000);
    assert_eq!(client.count("like", "post:7").await, 1);
    assert_eq!(client.count("like", "post:8").await, 0);
    assert_eq!(client.verified().await, 1);
}

#[tokio::test]
async fn a_job_that_never_was_is_not_found() {
    let server = Server::start("").await;
    let client = server.client();
    for job in ["job_0000000000000000", "job_", "job_+00000000000000f", "42", "job_00000000000000000"] {
        client.get(&format!("/v1/jobs/{}", encode(job))).problem(404, "not_found").await;
    }
}
