//! Any id that the contract allows comes back as it went in, and never meets another.

use crate::support::*;

/// The whole life of one edge, through both lists.
async fn lives(client: &Client, object: &str, subject: &str) {
    let made = client.like(object, subject).await;
    assert_eq!((made["object"].as_str(), made["subject"].as_str()), (Some(object), Some(subject)));
    assert_eq!(made["changed"], true, "{object} {subject}");
    assert_eq!(client.count("like", object).await, 1, "{object}");
    assert_eq!(client.subjects("like", object).await, [subject]);
    assert_eq!(client.objects("like", subject).await, [object]);
    let viewer = client.get(&format!("/v1/relations/like/{}?viewer={}", encode(object), encode(subject))).ok().await;
    assert_eq!(viewer, json!({"count": 1, "active": true}));
    let toggled = client.post(&format!("{}/toggle", edge("like", object, subject))).ok().await;
    assert_eq!((&toggled["active"], &toggled["count"]), (&json!(false), &json!(0)));
    client.like(object, subject).await;
    assert_eq!(client.unlike(object, subject).await["changed"], true);
    assert_eq!(client.subjects("like", object).await, Vec::<String>::new());
}

#[tokio::test]
async fn odd_ids_survive_the_whole_way() {
    let server = Server::start("").await;
    let client = server.client();
    let long = "x".repeat(256);
    let wide = "é".repeat(128);
    for id in [
        "a_b",
        "a:b",
        "a/b",
        "/",
        "a%b",
        "%2F",
        "%",
        "👍🏽",
        "가나다",
        "with space",
        " ",
        "a+b",
        "a?b#c",
        "a&b=c",
        "a,b",
        "a\"b'c",
        "<script>",
        "\\",
        "...",
        "subjects",
        "toggle",
        "relations",
        "null",
        "-1",
        &long,
        &wide,
    ] {
        lives(&client, &format!("post:{id}"), id).await;
    }
    assert_eq!(client.verified().await, 0);
}

#[tokio::test]
async fn dots_are_ids_too() {
    // A URL library would resolve these, so they go out by hand.
    let server = Server::start("").await;
    for id in [".", "..", "%2E", "%2e%2E"] {
        let plain = id.replace("%2E", ".").replace("%2e", ".");
        let path = format!("/v1/relations/like/post:{id}/{id}");
        let made = raw::ask(&server, "PUT", &path).await;
        assert_eq!(made.status, 200, "{made:?}");
        assert_eq!(made.json()["subject"], plain, "{id}");
        assert_eq!(made.json()["object"], format!("post:{plain}"), "{id}");
        assert_eq!(raw::ask(&server, "GET", &path).await.json()["active"], true, "{id}");
        let removed = raw::ask(&server, "DELETE", &path).await;
        assert_eq!(removed.json()["changed"], true, "{id}");
    }
}

#[tokio::test]
async fn composite_ids_never_collide() {
    let server = Server::start("").await;
    let client = server.client();
    let edges = [
        ("post:c", "a_b"),
        ("post:b_c", "a"),
        ("post:a_b_c", "a"),
        ("post:a:b", "c"),
        ("post:a", "b:c"),
        ("post:a", "b"),
        ("post:a/b", "c"),
        ("post:a", "b/c"),
        ("post:ab", "c"),
        ("post:a", "bc"),
    ];
    for (object, subject) in edges {
        assert_eq!(client.like(object, subject).await["changed"], true, "{object} {subject}");
    }
    for (object, subject) in edges {
        assert!(client.subjects("like", object).await.contains(&subject.to_owned()), "{object} {subject}");
    }
    for (object, subject) in edges {
        assert_eq!(client.unlike(object, subject).await["changed"], true, "{object} {subject}");
    }
    assert_eq!(client.verified().await, 0);
}

#[tokio::test]
async fn the_subject_called_subjects_is_a_subject() {
    let server = Server::start("").await;
    let client = server.client();
    assert_eq!(client.put("/v1/relations/like/post:1/subjects").ok().await["subject"], "subjects");
    assert_eq!(client.post("/v1/relations/like/post:1/subjects/toggle").ok().await["active"], false);
    assert_eq!(client.post("/v1/relations/like/post:1/toggle/toggle").ok().await["subject"], "toggle");
    // Reading that very path is the list; the edge itself shows as a viewer's.
    assert_eq!(client.subjects("like", "post:1").await, ["toggle"]);
    let viewed = client.get("/v1/relations/like/post:1?viewer=subjects").ok().await;
    assert_eq!(viewed, json!({"count": 1, "active": false}));
    assert_eq!(client.delete("/v1/relations/like/post:1/subjects").ok().await["changed"], false);
}

#[tokio::test]
async fn what_is_no_id_is_refused_before_anything_is_written() {
    let server = Server::start("").await;
    let client = server.client();
    let long = "x".repeat(257);
    for subject in [long.as_str(), "a\nb", "\u{0}", "\u{7f}", "\u{85}"] {
        client.put(&edge("like", "post:1", subject)).problem(400, "bad_request").await;
    }
    let long_object = format!("post:{long}");
    let long_type = format!("{}:1", "t".repeat(33));
    for object in ["post", "post:", ":1", "Post:1", "9post:1", "po st:1", "post:\t", &long_object, &long_type] {
        client.put(&edge("like", object, "alice")).problem(400, "bad_request").await;
        client.get(&format!("/v1/relations/like/{}", encode(object))).problem(400, "bad_request").await;
    }
    let long_name = "n".repeat(65);
    for relation in ["Like", "9like", "li%20ke", "l%C3%A4ike", &long_name] {
        client.put(&format!("/v1/relations/{relation}/post:1/alice")).problem(400, "bad_request").await;
    }
    assert_eq!(client.verified().await, 0);
}
