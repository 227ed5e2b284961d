//! What is read is of one moment, whatever is written meanwhile.

use std::cell::Cell;

use crate::database::{On, on, servers};
use crate::support::*;

const TURNS: usize = 120;

/// One server writes in turns, and meanwhile the other is asked.
async fn while_written(on: On, write: impl AsyncFn(&Client, usize), ask: impl AsyncFn(&Client)) {
    let servers: [Server; 2] = servers(&on.new_store(), "").await;
    let [writer, reader] = [servers[0].client(), servers[1].client()];
    write(&writer, 0).await;
    let is_over = Cell::new(false);
    let writing = async {
        for turn in 1..TURNS {
            write(&writer, turn).await;
        }
        is_over.set(true);
    };
    let asking = async {
        while !is_over.get() {
            ask(&reader).await;
        }
    };
    tokio::join!(writing, asking);
}

/// One of two batches, as a whole.
async fn send(writer: &Client, commands: &Value) {
    writer.post("/v1/batch").json(&json!({"atomic": true, "commands": commands})).ok().await;
}

fn score(member: &str, score: i64) -> Value {
    json!({"op": "score", "board": "points", "member": member, "score": score})
}

on!(a_board_whose_members_change_places_is_read_as_it_was: postgres redis cluster);
async fn a_board_whose_members_change_places_is_read_as_it_was(on: On) {
    let places = [json!([score("ann", 10), score("bob", 20)]), json!([score("ann", 20), score("bob", 10)])];
    let whole = |items: &Value| {
        let items = items.as_array().unwrap();
        let shown: Vec<(i64, i64)> =
            items.iter().map(|item| (item["score"].as_i64().unwrap(), item["rank"].as_i64().unwrap())).collect();
        shown == [(20, 1), (10, 2)] && items[0]["member"] != items[1]["member"]
    };
    while_written(
        on,
        async |writer, turn| send(writer, &places[turn % 2]).await,
        async |reader| {
            let list = reader.get("/v1/boards/points").ok().await;
            assert!(list["members"] == 2 && whole(&list["items"]), "{list}");
            let standing = reader.get("/v1/boards/points/ann?around=2").ok().await;
            assert!(standing["members"] == 2 && whole(&standing["around"]), "{standing}");
            let expected = if standing["score"] == 20 { 1 } else { 2 };
            assert_eq!(standing["rank"], expected, "{standing}");
        },
    )
    .await;
}

on!(a_board_with_one_member_or_none_is_read_so: postgres redis cluster);
async fn a_board_with_one_member_or_none_is_read_so(on: On) {
    let path = "/v1/boards/points/ann";
    let write = async |writer: &Client, turn: usize| match turn % 2 {
        0 => drop(writer.put(path).json(&json!({"score": 5})).ok().await),
        _ => drop(writer.delete(path).ok().await),
    };
    while_written(on, write, async |reader| {
        let standing = reader.get(path).ok().await;
        assert_eq!(standing["members"], i64::from(!standing["score"].is_null()), "{standing}");
    })
    .await;
}

on!(what_moves_together_is_read_together: postgres redis cluster);
async fn what_moves_together_is_read_together(on: On) {
    let all = |op: &str| {
        let of = |object: &str| json!({"op": op, "relation": "like", "object": object, "subject": "ann"});
        json!([of("post:1"), of("post:2"), of("post:3")])
    };
    let turns = [all("relate"), all("unrelate")];
    while_written(
        on,
        async |writer, turn| send(writer, &turns[turn % 2]).await,
        async |reader| {
            let asked = json!({"objects": ["post:1", "post:2", "post:3"], "relations": ["like"], "viewer": "ann"});
            let feed = reader.post("/v1/read").json(&asked).ok().await;
            let items = feed["items"].as_array().unwrap();
            assert!(items.iter().all(|item| item["relations"] == items[0]["relations"]), "{feed}");
        },
    )
    .await;
}

on!(the_days_of_one_who_is_alone_fit_each_other: postgres redis cluster);
async fn the_days_of_one_who_is_alone_fit_each_other(on: On) {
    let mark = |present: bool| {
        let attend =
            |day: &str| json!({"op": "attend", "sheet": "daily", "day": day, "subject": "7", "present": present});
        json!([attend("2026-01-01"), attend("2026-01-02")])
    };
    let turns = [mark(true), mark(false)];
    while_written(
        on,
        async |writer, turn| send(writer, &turns[turn % 2]).await,
        async |reader| {
            let days = reader.get("/v1/attendance/daily?days=2026-01-01,2026-01-02").ok().await;
            assert!(days["days"].as_array().unwrap().iter().all(|day| day["count"] == days["count"]), "{days}");
        },
    )
    .await;
}
