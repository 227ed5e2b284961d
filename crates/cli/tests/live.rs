//! Live counts: the full count after each change, never a delta.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

mod support;

use support::*;

#[tokio::test]
async fn a_stream_begins_with_the_counts_as_they_are() {
    let server = Server::start("").await;
    let client = server.client();
    client.like("post:1", "alice").await;
    let mut events = Events::open(&client, "objects=post:1,post:2&relations=like,bookmark").await;
    let mut first = Vec::new();
    for _ in 0..4 {
        first.push(events.next().await.unwrap());
    }
    first.sort_by_key(Value::to_string);
    let expected = [
        json!({"object": "post:1", "relation": "bookmark", "count": 0}),
        json!({"object": "post:1", "relation": "like", "count": 1}),
        json!({"object": "post:2", "relation": "bookmark", "count": 0}),
        json!({"object": "post:2", "relation": "like", "count": 0}),
    ];
    let mut expected = expected.to_vec();
    expected.sort_by_key(Value::to_string);
    assert_eq!(first, expected);
}

#[tokio::test]
async fn every_change_brings_the_full_count_and_no_change_brings_nothing() {
    let server = Server::start("").await;
    let client = server.client();
    let mut events = Events::open(&client, "objects=post:1&relations=like").await;
    let counted = |count: i64| Some(json!({"object": "post:1", "relation": "like", "count": count}));
    assert_eq!(events.next().await, counted(0));
    client.like("post:1", "alice").await;
    assert_eq!(events.next().await, counted(1));
    // A repeated like, another object and another relation are nothing to this stream.
    client.like("post:1", "alice").await;
    client.like("post:2", "alice").await;
    client.put(&edge("bookmark", "post:1", "alice")).ok().await;
    client.like("post:1", "bob").await;
    assert_eq!(events.next().await, counted(2));
    client.unlike("post:1", "alice").await;
    assert_eq!(events.next().await, counted(1));
    let job = client.delete("/v1/subjects/bob").status(202).await;
    client.job_done(&job).await;
    assert_eq!(events.next().await, counted(0));
}

#[tokio::test]
async fn many_changes_at_once_end_at_the_right_count_for_every_follower() {
    let server = Server::start("").await;
    let client = server.client();
    let mut followers = Vec::new();
    for _ in 0..5 {
        followers.push(Events::open(&client, "objects=post:1,post:2&relations=like").await);
    }
    let likes = (0..120).map(|n| {
        let (client, object) = (client.clone(), format!("post:{}", n % 2 + 1));
        async move { client.like(&object, &format!("fan-{n}")).await }
    });
    futures_util::future::join_all(likes).await;
    for follower in &mut followers {
        let mut last = [0; 2];
        let mut seen = 0;
        // Only likes happen, so a full count never goes down.
        while seen < 2 {
            let event = follower.next().await.unwrap();
            let number = usize::from(event["object"] == "post:2");
            let count = event["count"].as_i64().unwrap();
            assert!(count >= last[number] && count <= 60, "{event}");
            last[number] = count;
            seen += usize::from(count == 60);
        }
    }
}

#[tokio::test]
async fn kinds_come_along() {
    let server = Server::start("[relations.reaction]\nread = \"public\"\none_of = [\"love\", \"wow\"]\n").await;
    let client = server.client();
    let mut events = Events::open(&client, "objects=post:1&relations=reaction").await;
    assert_eq!(events.next().await.unwrap()["kinds"], json!({"love": 0, "wow": 0}));
    let path = edge("reaction", "post:1", "alice");
    client.put(&path).json(&json!({"kind": "love"})).ok().await;
    let love = json!({"object": "post:1", "relation": "reaction", "count": 1, "kinds": {"love": 1, "wow": 0}});
    assert_eq!(events.next().await, Some(love));
    client.put(&path).json(&json!({"kind": "wow"})).ok().await;
    let wow = json!({"object": "post:1", "relation": "reaction", "count": 1, "kinds": {"love": 0, "wow": 1}});
    assert_eq!(events.next().await, Some(wow));
}

#[tokio::test]
async fn ids_with_commas_and_other_oddities_can_be_followed() {
    let server = Server::start("").await;
    let client = server.client();
    let odd = ["post:a,b", "post:c d", "post:👍", "post:&=%", "post:a+b"];
    let listed: Vec<String> = odd.iter().map(|object| encode(object)).collect();
    let mut events = Events::open(&client, &format!("objects={}&relations=like", listed.join(","))).await;
    for object in odd {
        client.like(object, "alice").await;
        events.until(object, 1, |_| {}).await;
    }
    let mut repeated = Events::open(&client, "objects=post:1&objects=post:2&relations=like").await;
    let first = [repeated.next().await.unwrap(), repeated.next().await.unwrap()];
    assert_eq!((&first[0]["object"], &first[1]["object"]), (&json!("post:1"), &json!("post:2")));
}

#[tokio::test]
async fn a_stream_ends_when_the_server_stops() {
    let mut server = Server::start("").await;
    let client = server.client();
    let mut events = Events::open(&client, "objects=post:1&relations=like").await;
    events.next().await.unwrap();
    server.terminate();
    assert_eq!(events.next().await, None);
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn what_may_not_be_read_may_not_be_followed() {
    let issuer = tokens::Issuer::new();
    let config = "[relations.secret]\nread = \"none\"\n\
                  [relations.guarded]\nread = \"public\"\nwhen.read = \"object.attributes.open == true\"\n";
    let server = Server::start(&format!("{}{config}", issuer.config())).await;
    let user = server.client_as(Some(&tokens::user("alice")));
    let refused = |query: &str| user.get(&format!("/v1/live?{query}"));
    refused("objects=post:1&relations=secret").problem(403, "forbidden").await;
    refused("objects=post:1&relations=like,secret").problem(403, "forbidden").await;
    refused("objects=post:1&relations=nope").problem(404, "relation_not_found").await;
    refused("objects=post:1").problem(400, "bad_request").await;
    refused("relations=like").problem(400, "bad_request").await;
    let nobody = server.client_as(None);
    nobody.get("/v1/live?objects=post:1&relations=like").problem(401, "unauthenticated").await;
    let many: Vec<String> = (0..201).map(|n| format!("post:{n}")).collect();
    refused(&format!("objects={}&relations=like", many.join(","))).problem(400, "bad_request").await;

    // A condition that forbids one object leaves it out; the others are told.
    let admin = server.client();
    admin.put("/v1/objects/post:open").json(&json!({"attributes": {"open": true}})).ok().await;
    let mut events = Events::open(&user, "objects=post:closed,post:open&relations=guarded").await;
    assert_eq!(events.next().await.unwrap()["object"], "post:open");
    admin.put(&edge("guarded", "post:closed", "bob")).ok().await;
    admin.put(&edge("guarded", "post:open", "bob")).ok().await;
    let next = events.next().await.unwrap();
    assert_eq!((&next["object"], &next["count"]), (&json!("post:open"), &json!(1)));
}

#[tokio::test]
async fn what_may_not_be_read_any_more_is_not_told_any_more() {
    let issuer = tokens::Issuer::new();
    let config = "[relations.guarded]\nread = \"public\"\nwhen.read = \"object.attributes.open == true\"\n";
    let server = Server::start(&format!("{}{config}", issuer.config())).await;
    let (admin, user) = (server.client(), server.client_as(Some(&tokens::user("alice"))));
    let set_open = async |object: &str, open: bool| {
        let body = json!({"attributes": {"open": open}});
        admin.put(&format!("/v1/objects/{object}")).json(&body).ok().await;
    };
    let add = async |object: &str, who: &str| drop(admin.put(&edge("guarded", object, who)).ok().await);
    let told = |object: &str, count: i64| Some(json!({"object": object, "relation": "guarded", "count": count}));
    set_open("post:1", true).await;
    set_open("post:2", true).await;
    let mut events = Events::open(&user, "objects=post:1,post:2,post:3&relations=guarded").await;
    assert_eq!(events.next().await, told("post:1", 0));
    assert_eq!(events.next().await, told("post:2", 0));
    add("post:1", "bob").await;
    assert_eq!(events.next().await, told("post:1", 1));
    set_open("post:1", false).await;
    user.get("/v1/relations/guarded/post:1").problem(403, "condition_failed").await;
    add("post:1", "carol").await;
    add("post:2", "carol").await;
    assert_eq!(events.next().await, told("post:2", 1), "the stream goes on with what may be told");
    // Opened again, or for the first time: told from the next change on.
    set_open("post:1", true).await;
    set_open("post:3", true).await;
    add("post:1", "dora").await;
    assert_eq!(events.next().await, told("post:1", 3));
    add("post:3", "dora").await;
    assert_eq!(events.next().await, told("post:3", 1));
}
