//! Lists in both directions: newest first, in pages that skip nothing and repeat nothing.

use std::collections::HashSet;

use crate::support::*;

/// Likes in one atomic batch, so that many fall into one millisecond.
async fn like_together(client: &Client, edges: &[(String, String)]) {
    let commands: Vec<Value> = edges
        .iter()
        .map(|(object, subject)| json!({"op": "relate", "relation": "like", "object": object, "subject": subject}))
        .collect();
    client.post("/v1/batch").json(&json!({"atomic": true, "commands": commands})).ok().await;
}

fn fans(count: usize) -> Vec<(String, String)> {
    (0..count).map(|n| ("post:1".to_owned(), format!("fan-{n:03}"))).collect()
}

/// Walks a list in pages, doing something between them.
async fn walk(client: &Client, path: &str, limit: usize, mut between: impl AsyncFnMut(usize)) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    for page_number in 0.. {
        let page = client.get(&format!("{path}?limit={limit}{cursor}")).ok().await;
        let page_items = page["items"].as_array().unwrap();
        assert!(page_items.len() <= limit);
        items.extend(page_items.iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else { break };
        assert_eq!(page_items.len(), limit, "only the last page is short");
        cursor = format!("&cursor={next}");
        between(page_number).await;
    }
    items
}

fn subjects_of(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["subject"].as_str().unwrap()).collect()
}

const LIST: &str = "/v1/relations/like/post:1/subjects";

#[tokio::test]
async fn both_directions_are_newest_first_with_times_and_meta() {
    let server = Server::start("").await;
    let client = server.client();
    client.put(&edge("like", "post:1", "alice")).json(&json!({"meta": {"n": 1}})).ok().await;
    client.like("post:1", "bob").await;
    client.like("post:2", "alice").await;
    let fans = client.get(LIST).ok().await;
    assert!(fans.get("next_cursor").is_none());
    let items = fans["items"].as_array().unwrap();
    assert_eq!(subjects_of(items), ["bob", "alice"]);
    assert_eq!((&items[0]["meta"], &items[1]["meta"]), (&Value::Null, &json!({"n": 1})));
    assert!(items.iter().all(|item| item["created_at"].is_string() && item.get("object").is_none()));
    assert_eq!(client.objects("like", "alice").await, ["post:2", "post:1"]);
    assert_eq!(client.objects("like", "nobody").await, Vec::<String>::new());
}

#[tokio::test]
async fn pages_of_any_size_give_the_same_list_however_many_share_a_millisecond() {
    let server = Server::start("").await;
    let client = server.client();
    like_together(&client, &fans(130)).await;
    let whole = walk(&client, LIST, 100, async |_| {}).await;
    let expected: Vec<String> = fans(130).into_iter().map(|(_, subject)| subject).rev().collect();
    assert_eq!(subjects_of(&whole), expected);
    for limit in [1, 7, 50, 99] {
        assert_eq!(walk(&client, LIST, limit, async |_| {}).await, whole, "limit={limit}");
    }
    let default = client.get(LIST).ok().await;
    assert_eq!(default["items"].as_array().unwrap().len(), 50);
}

#[tokio::test]
async fn a_walk_sees_all_that_stays_while_others_come_and_go() {
    let server = Server::start("").await;
    let client = server.client();
    like_together(&client, &fans(60)).await;
    let stays = |subject: &str| subject.strip_prefix("fan-").is_some_and(|n| n.parse::<u32>().unwrap() % 3 != 0);
    let walked = walk(&client, LIST, 10, async |page| {
        // Some of those that leave, just before and behind the cursor; and newcomers.
        for n in (page * 12..page * 12 + 12).map(|n| 59 - n).filter(|n| n % 3 == 0) {
            client.unlike("post:1", &format!("fan-{n:03}")).await;
        }
        client.like("post:1", &format!("newcomer-{page}")).await;
    })
    .await;
    let seen = subjects_of(&walked);
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), seen.len(), "nothing is repeated");
    let expected: Vec<String> = fans(60).into_iter().map(|(_, subject)| subject).filter(|s| stays(s)).rev().collect();
    let stayed: Vec<&str> = seen.into_iter().filter(|subject| stays(subject)).collect();
    assert_eq!(stayed, expected, "nothing that stayed is skipped");
}

#[tokio::test]
async fn a_cursor_outlives_the_edge_that_it_points_at() {
    let server = Server::start("").await;
    let client = server.client();
    like_together(&client, &fans(4)).await;
    let page = client.get(&format!("{LIST}?limit=2")).ok().await;
    let cursor = page["next_cursor"].as_str().unwrap();
    client.unlike("post:1", "fan-002").await;
    let rest = client.get(&format!("{LIST}?limit=2&cursor={cursor}")).ok().await;
    assert_eq!(subjects_of(rest["items"].as_array().unwrap()), ["fan-001", "fan-000"]);
    client.like("post:1", "fan-002").await;
    let again = client.get(&format!("{LIST}?limit=2&cursor={cursor}")).ok().await;
    assert_eq!(again, rest, "back at the front, not in the middle");
}

#[tokio::test]
async fn foreign_and_broken_cursors_are_refused() {
    let server = Server::start("").await;
    let client = server.client();
    like_together(&client, &fans(3)).await;
    client.like("post:2", "fan-000").await;
    client.put(&edge("bookmark", "post:1", "fan-000")).ok().await;
    let page = client.get(&format!("{LIST}?limit=1")).ok().await;
    let cursor = page["next_cursor"].as_str().unwrap();
    for other in [
        "/v1/relations/like/post:2/subjects",
        "/v1/relations/bookmark/post:1/subjects",
        "/v1/subjects/fan-000/relations/like",
        "/v1/subjects/post:1/relations/like",
    ] {
        client.get(&format!("{other}?cursor={cursor}")).problem(400, "bad_cursor").await;
    }
    let upside_down: String = cursor.chars().rev().collect();
    let tail = &cursor[2..];
    let longer = format!("{cursor}00");
    for broken in ["", "x", "zz", "%00", "%F0%9F%91%8D", tail, &longer, &upside_down, &"a".repeat(5_000)] {
        client.get(&format!("{LIST}?cursor={broken}")).problem(400, "bad_cursor").await;
    }
}

#[tokio::test]
async fn limits_outside_1_to_100_are_refused() {
    let server = Server::start("").await;
    let client = server.client();
    client.like("post:1", "alice").await;
    for good in ["1", "100"] {
        client.get(&format!("{LIST}?limit={good}")).ok().await;
    }
    for bad in ["0", "101", "-1", "1.5", "many", "", "99999999999999999999"] {
        client.get(&format!("{LIST}?limit={bad}")).problem(400, "bad_request").await;
        client.get(&format!("/v1/subjects/alice/relations/like?limit={bad}")).problem(400, "bad_request").await;
    }
}
