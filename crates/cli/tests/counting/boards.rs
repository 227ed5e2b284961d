//! Boards: who leads?

use crate::support::*;

async fn set(client: &Client, board: &str, member: &str, score: i64) -> Value {
    client.put(&format!("/v1/boards/{board}/{member}")).json(&json!({"score": score})).ok().await
}

/// The members of a page with their ranks.
fn ranks(items: &Value) -> Vec<(String, u64)> {
    let rank = |item: &Value| (item["member"].as_str().unwrap().to_owned(), item["rank"].as_u64().unwrap());
    items.as_array().unwrap().iter().map(rank).collect()
}

fn told(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(member, rank)| ((*member).to_owned(), *rank)).collect()
}

#[tokio::test]
async fn scores_are_added_set_and_taken_away() {
    let server = Server::start("").await;
    let client = server.client();
    let add = async |by: i64| client.post("/v1/boards/points/alice").json(&json!({"by": by})).ok().await;
    let first = add(10).await;
    assert_eq!(first, json!({"board": "points", "member": "alice", "score": 10, "rank": 1, "changed": true}));
    assert_eq!(add(-3).await["score"], 7);
    assert_eq!(add(0).await["changed"], false);
    assert_eq!(set(&client, "points", "bob", 8).await["rank"], 1);
    assert_eq!(set(&client, "points", "bob", 8).await["changed"], false);
    let standing = client.get("/v1/boards/points/alice").ok().await;
    assert_eq!(standing, json!({"member": "alice", "score": 7, "rank": 2, "members": 2}));
    let left = client.delete("/v1/boards/points/bob").ok().await;
    assert_eq!(left, json!({"board": "points", "member": "bob", "changed": true}));
    assert_eq!(client.delete("/v1/boards/points/bob").ok().await["changed"], false);
    let gone = client.get("/v1/boards/points/bob").ok().await;
    assert_eq!((&gone["score"], &gone["rank"], &gone["members"]), (&Value::Null, &Value::Null, &json!(1)));

    let keyed = || client.post("/v1/boards/points/alice").json(&json!({"by": 5})).header("idempotency-key", "k");
    assert_eq!(keyed().ok().await["score"], 12);
    let again = keyed().send().await;
    assert_eq!((again.header("idempotent-replayed"), &again.json()["score"]), (Some("true"), &json!(12)));
    client.verified().await;
}

#[tokio::test]
async fn ties_are_ranked_as_declared() {
    let config = "[boards.first]\n[boards.shared]\nties = \"shared\"\n[boards.dense]\nties = \"dense\"\n";
    let server = Server::start(config).await;
    let client = server.client();
    for (board, expected) in [("first", [1, 2, 3, 4]), ("shared", [1, 2, 2, 4]), ("dense", [1, 2, 2, 3])] {
        // Dora reaches 5 before carl does.
        for (member, score) in [("dora", 5), ("eve", 1), ("anna", 9), ("carl", 5)] {
            set(&client, board, member, score).await;
        }
        let names = ["anna", "dora", "carl", "eve"];
        let expected: Vec<(&str, u64)> = names.into_iter().zip(expected).collect();
        let page = client.get(&format!("/v1/boards/{board}")).ok().await;
        assert_eq!(ranks(&page["items"]), told(&expected), "{board}");
        for (member, rank) in &expected {
            let standing = client.get(&format!("/v1/boards/{board}/{member}")).ok().await;
            assert_eq!(standing["rank"], *rank, "{board} {member}");
        }
        let around = client.get(&format!("/v1/boards/{board}/carl?around=1")).ok().await;
        assert_eq!(ranks(&around["around"]), told(&expected[1..]), "{board}");
        let rest = client.get(&format!("/v1/boards/{board}?rank=3")).ok().await;
        assert_eq!(ranks(&rest["items"]), told(&expected[2..]), "{board}");
    }
    client.verified().await;
}

#[tokio::test]
async fn a_board_is_read_page_by_page_and_from_any_place() {
    const MEMBERS: i64 = 250;
    let server = Server::start("").await;
    let client = server.client();
    let commands: Vec<Value> = (0..MEMBERS)
        .map(|n| json!({"op": "score", "board": "points", "member": format!("m{n}"), "score": n * 7 % MEMBERS}))
        .collect();
    client.post("/v1/batch").json(&json!({"commands": commands})).ok().await;
    let all = client.list("/v1/boards/points").await;
    let places: Vec<u64> = all.iter().map(|item| item["rank"].as_u64().unwrap()).collect();
    assert_eq!(places, (1..=MEMBERS as u64).collect::<Vec<_>>());
    assert!(all.windows(2).all(|pair| pair[0]["score"].as_i64() > pair[1]["score"].as_i64()));
    let page = client.get("/v1/boards/points?rank=101&limit=3").ok().await;
    assert_eq!((&page["members"], &page["items"]), (&json!(MEMBERS), &json!(all[100..103])));
    let next = page["next_cursor"].as_str().unwrap();
    let page = client.get(&format!("/v1/boards/points?limit=3&cursor={next}")).ok().await;
    assert_eq!(page["items"], json!(all[103..106]));
    let member = all[99]["member"].as_str().unwrap();
    let around = client.get(&format!("/v1/boards/points/{member}?around=50")).ok().await;
    assert_eq!((&around["rank"], &around["around"]), (&json!(100), &json!(all[49..150])));
    assert_eq!(client.get("/v1/boards/points?rank=1000").ok().await["items"], json!([]));
    client.get("/v1/boards/points?cursor=nonsense").problem(400, "bad_cursor").await;
    for wrong in
        ["?limit=0", "?limit=101", "?rank=0", &format!("?rank=1&cursor={next}"), "/m1?around=51", "/m1?around=x"]
    {
        client.get(&format!("/v1/boards/points{wrong}")).problem(400, "bad_request").await;
    }
}

#[tokio::test]
async fn the_best_score_stays() {
    let server = Server::start("[boards.race]\nbest_of = true\n").await;
    let client = server.client();
    assert_eq!(set(&client, "race", "alice", 10).await["score"], 10);
    let worse = set(&client, "race", "alice", 9).await;
    assert_eq!((&worse["score"], &worse["changed"]), (&json!(10), &json!(false)));
    assert_eq!(set(&client, "race", "alice", 11).await["score"], 11);
    client.post("/v1/boards/race/alice").json(&json!({"by": 1})).problem(400, "bad_request").await;
}

#[tokio::test]
async fn a_season_is_named_by_its_beginning() {
    let server = Server::start("[boards.yearly]\nseason = \"0 0 1 1 * Asia/Seoul\"\n").await;
    let client = server.client();
    assert_eq!(client.get("/v1/seasons/yearly").ok().await, json!({"items": []}));
    let season = set(&client, "yearly", "alice", 5).await["season"].as_str().unwrap().to_owned();
    assert!(season.ends_with("-12-31T15:00:00.000Z"), "{season}");
    let listed = client.get("/v1/seasons/yearly").ok().await;
    assert_eq!((&listed["items"][0]["season"], &listed["items"][0]["closed"]), (&json!(season), &json!(false)));
    let read = async |query: &str| client.get(&format!("/v1/boards/yearly{query}")).ok().await;
    assert_eq!(read(&format!("?season={season}")).await["members"], 1);
    assert_eq!(read(&format!("/alice?season={season}")).await["rank"], 1);
    let before = read("?season=2019-12-31T15:00:00Z").await;
    assert_eq!((&before["members"], &before["items"]), (&json!(0), &json!([])));
    client.get("/v1/boards/yearly?season=spring").problem(400, "bad_request").await;
    client.get(&format!("/v1/boards/points?season={season}")).problem(400, "bad_request").await;
    client.get("/v1/seasons/points").problem(400, "bad_request").await;
}
