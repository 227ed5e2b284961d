//! The commands of counting, each on a server and on a folder with the same outcome.

use serde_json::{Value, json};
use tally_testing::{Cluster, Postgres, Redis};

use crate::data::on_both;
use crate::world::World;

#[test]
fn counters_and_unique_counts() {
    on_both(&[], |world, place| {
        let run = |args: &[&str]| place.run(world, args).json();
        assert_eq!(run(&["counter", "add", "views", "post:42", "--json"])["value"], 1);
        assert_eq!(run(&["counter", "add", "views", "post:42", "--by", "10", "--json"])["value"], 11);
        assert_eq!(run(&["counter", "add", "views", "post:42", "--by", "-4", "--json"])["value"], 7);
        assert_eq!(run(&["counter", "get", "views", "post:42", "--json"])["value"], 7);
        let feed = run(&["read", "--objects", "post:42", "--counters", "views", "--json"]);
        assert_eq!(feed["items"][0]["counters"], json!({"views": 7}));
        assert_eq!(run(&["unique", "add", "dau", "mon", "alice", "bob", "--json"])["estimate"], 2);
        assert_eq!(run(&["unique", "add", "dau", "a,b", "bob", "carol", "--json"])["changed"], true);
        assert_eq!(run(&["unique", "count", "dau", "mon", "--json"])["estimate"], 2);
        assert_eq!(run(&["unique", "count", "dau", "mon", "a,b", "--json"])["estimate"], 3);
    });
}

#[test]
fn a_used_board_is_not_ranked_in_another_way() {
    let own = std::process::id();
    let world = World::new();
    world.seed("data", &[]);
    for store in [
        world.url("data"),
        format!("{}?sslmode=disable&schema=ties_{own}", Postgres::shared().unwrap()),
        format!("{}?prefix=ties_{own}", Redis::shared().unwrap()),
        format!("{}?prefix=ties_{own}", Cluster::shared().unwrap()),
    ] {
        let declare =
            |ties: &str, season: &str| world.write("tally.toml", &format!("[boards.b]\nties = \"{ties}\"\n{season}"));
        let on = |args: &[&str]| world.run(&[args, &["--store", &store]].concat());
        declare("shared", "");
        drop(world.serve_on(&store));
        let is_refused = |word: &str| {
            for args in [&["board", "top", "b"][..], &["board", "set", "b", "zoe", "1"], &["verify"]] {
                on(args).fails(1, word);
            }
        };
        for season in ["", "season = \"0 0 * * MON\"\n"] {
            declare("shared", season);
            assert_eq!(on(&["board", "set", "b", "alice", "5"]).code, 0);
            declare("first_to_reach", season);
            assert_eq!(on(&["board", "set", "b", "bob", "5"]).code, 0, "that is only how they are shown");
            declare("dense", season);
            is_refused("the `ties` of the board `b` were not `dense` when it got its members, and now they are");
            declare("shared", season);
            for who in ["alice", "bob"] {
                assert_eq!(on(&["board", "leave", "b", who]).code, 0);
            }
            declare("dense", season);
            assert_eq!(on(&["board", "set", "b", "alice", "5"]).code, 0, "an empty board may be ranked anew");
            declare("shared", season);
            is_refused("the `ties` of the board `b` were `dense` when it got its members, and now they are not");
            declare("dense", season);
            assert_eq!(on(&["board", "leave", "b", "alice"]).code, 0);
        }
    }
}

#[test]
fn attendance() {
    on_both(&[], |world, place| {
        let run = |args: &[&str]| place.run(world, args).json();
        for (day, streak) in [("2026-01-01", 1), ("2026-01-02", 2)] {
            assert_eq!(run(&["attend", "mark", "daily", "alice", "--day", day, "--json"])["streak"], streak);
        }
        run(&["attend", "mark", "daily", "bob", "--day", "2026-01-02", "--json"]);
        assert_eq!(run(&["attend", "day", "daily", "2026-01-02", "--json"])["count"], 2);
        let days = run(&["attend", "days", "daily", "alice", "--from", "2026-01-02", "--json"]);
        assert_eq!((&days["days"], &days["longest_streak"]), (&json!(["2026-01-02"]), &json!(1)));
        let count = |more: &[&str]| {
            run(&[&["attend", "count", "daily", "2026-01-01", "2026-01-02", "--json"], more].concat())["count"].clone()
        };
        assert_eq!((count(&[]), count(&["--all"])), (json!(2), json!(1)));
        let absent = run(&["attend", "mark", "daily", "alice", "--day", "2026-01-02", "--absent", "--json"]);
        assert_eq!((&absent["present"], &absent["count"]), (&json!(false), &json!(1)));
        let today = run(&["attend", "mark", "daily", "alice", "--json"]);
        assert_eq!((&today["present"], &today["changed"]), (&json!(true), &json!(true)));
        assert_eq!(run(&["attend", "day", "daily", "--json"])["count"], 1);
    });
}

#[test]
fn boards_and_limits() {
    on_both(&[], |world, place| {
        let run = |args: &[&str]| place.run(world, args).json();
        assert_eq!(run(&["board", "add", "yearly", "alice", "10", "--json"])["rank"], 1);
        assert_eq!(run(&["board", "set", "yearly", "bob", "10", "--json"])["rank"], 1);
        assert_eq!(run(&["board", "add", "yearly", "carol", "-3", "--json"])["rank"], 3);
        let top = run(&["board", "top", "yearly", "--limit", "2", "--json"]);
        let season = top["season"].as_str().unwrap();
        let item = |member, score: i64, rank: u64| json!({"member": member, "score": score, "rank": rank});
        assert_eq!(top["items"], json!([item("alice", 10, 1), item("bob", 10, 1)]));
        let next = top["next_cursor"].as_str().unwrap();
        let rest = run(&["board", "top", "yearly", "--cursor", next, "--season", season, "--json"]);
        assert_eq!(rest["items"], json!([item("carol", -3, 3)]));
        assert_eq!(run(&["board", "top", "yearly", "--rank", "3", "--json"])["items"], rest["items"]);
        let rank = run(&["board", "rank", "yearly", "carol", "--around", "1", "--json"]);
        assert_eq!(rank["around"], json!([item("bob", 10, 1), item("carol", -3, 3)]));
        assert_eq!(run(&["board", "seasons", "yearly", "--json"])["items"][0]["season"], season);
        assert_eq!(run(&["board", "leave", "yearly", "bob", "--json"])["changed"], true);
        assert_eq!(run(&["board", "rank", "yearly", "bob", "--json"])["rank"], Value::Null);

        assert_eq!(run(&["limit", "take", "burst", "alice", "--cost", "2", "--json"])["remaining"], 1);
        place
            .run(world, &["limit", "take", "burst", "alice", "--cost", "2"])
            .fails(1, "rate_limited: `burst` allows 3");
        assert_eq!(run(&["limit", "show", "burst", "alice", "--json"])["remaining"], 1);
    });
}

#[test]
fn people_get_tables_and_refusals_are_one_line() {
    on_both(&[], |world, place| {
        for (args, words) in [
            (&["counter", "add", "views", "post:42"][..], &["counter", "views", "post:42", "┆ 1"][..]),
            (&["counter", "get", "views", "post:42"], &["value", "┆ 1"]),
            (&["unique", "add", "dau", "mon", "alice"], &["about", "yes"]),
            (&["unique", "count", "dau", "mon", "tue"], &["mon, tue", "±0.81 %"]),
            (&["attend", "mark", "daily", "alice", "--day", "2026-01-01"], &["streak", "2026-01-01"]),
            (&["attend", "day", "daily", "2026-01-01"], &["count", "┆ 1"]),
            (&["attend", "days", "daily", "alice"], &["longest", "2026-01-01"]),
            (&["attend", "count", "daily", "2026-01-01"], &["on any of them"]),
            (&["board", "set", "points", "alice", "7"], &["rank", "alice", "┆ 7"]),
            (&["board", "top", "points"], &["│ 1    ┆ alice"]),
            (&["board", "rank", "points", "nobody"], &["nobody is not on the board."]),
            (&["limit", "take", "burst", "alice"], &["remaining", "3600000"]),
            (&["limit", "show", "burst", "alice"], &["remaining", "┆ 2"]),
            (&["read", "--objects", "post:42", "--relations", "like", "--counters", "views"], &["like", "views"]),
        ] {
            let ran = place.run(world, args);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran}");
            for word in words {
                assert!(ran.out.contains(word), "no `{word}` in: {ran}");
            }
        }
        let run = |args: &[&str]| place.run(world, args);
        run(&["counter", "get", "view", "x"]).fails(1, "counter_not_found: there is no counter `view`; did you mean");
        run(&["board", "seasons", "points"]).fails(1, "bad_request: `points` has no seasons");
        run(&["limit", "take", "burst", "alice", "--cost", "9"]).fails(1, "bad_request: ");
    });
}

#[test]
fn wrong_words_are_wrong_usage() {
    let world = World::new();
    for (args, words) in [
        (&["counter", "add", "views", "x", "--by", "lots"][..], "--by"),
        (&["counter", "add", "Not A Name", "x"], "lower-case letter"),
        (&["unique", "add", "dau", "x"], "<MEMBER>"),
        (&["attend", "day", "daily", "tomorrow"], "2026-01-31"),
        (&["board", "top", "points", "--rank", "0"], "--rank"),
        (&["board", "top", "points", "--season", "spring"], "2026-01-31T00:00:00Z"),
        (&["board", "rank", "points", "alice", "--around", "51"], "0..=50"),
        (&["limit", "take", "posting"], "<KEY>"),
        (&["read", "--objects", "post:1"], "--relations"),
    ] {
        let ran = world.run(args);
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.err.contains(words), "no `{words}` in: {ran}");
    }
}
