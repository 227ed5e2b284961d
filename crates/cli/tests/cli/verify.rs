//! `tally verify`: a count that was tampered with is found, shown and mended.

use std::sync::Arc;

use serde_json::{Value, json};
use tally::core::Catalog;
use tally::core::command::{Call, Command, Recount, Step, Verify};
use tally::core::reply::{JobReply, Reply};
use tally::core::rows::{JobId, Round};
use tally::embedded::Embedded;
use tally::embedded::store::{Batch, Options, Store};
use tally::engine::{Runner, RunnerOptions, SystemClock};

use crate::world::{KEY, Ran, Served, World, until};

/// Overwrites the count of an object's likes behind Tally's back.
pub(crate) fn tamper(world: &World, object: &str, count: u8) {
    let store = Store::open(&world.path("data"), Options::default()).unwrap();
    let mut batch = Batch::new();
    batch.put(format!("c{object}\0like\0").as_bytes(), &[count]);
    store.apply(&batch).unwrap();
    store.close();
}

fn finds_and_mends(run: impl Fn(&[&str]) -> Ran) {
    let found = run(&["verify"]);
    assert_eq!((found.code, found.err.as_str()), (3, ""), "quiet when nobody watches: {found}");
    for word in ["post:42", "┆ 9", "┆ 2", "┆ +7", "tally verify --repair"] {
        assert!(found.out.contains(word), "no `{word}` in: {found}");
    }
    let report = run(&["verify", "--json"]);
    assert_eq!(report.code, 3, "{report}");
    let drift = json!([{"relation": "like", "object": "post:42", "stored": 9, "counted": 2}]);
    assert_eq!(report.any_json()["drift"], drift);
    assert_eq!(run(&["count", "like", "post:42", "--json"]).json(), json!({"count": 9}));

    let mended = run(&["verify", "--repair", "--json"]).json();
    assert_eq!((&mended["drifted"], &mended["repaired"]), (&json!(1), &json!(1)));
    let sound = run(&["verify"]);
    assert_eq!(sound.code, 0, "{sound}");
    assert!(sound.out.contains("3 edges") && sound.out.contains("everything adds up"), "{sound}");
    assert_eq!(run(&["count", "like", "post:42", "--json"]).json(), json!({"count": 2}));
}

fn tampered() -> World {
    let world = World::new();
    world.seed("data", &[("post:42", "alice"), ("post:42", "bob"), ("post:1", "alice")]);
    tamper(&world, "post:42", 9);
    world
}

#[test]
fn a_tampered_count_is_found_and_mended_by_a_server() {
    let world = tampered();
    let server = world.serve();
    finds_and_mends(|args| server.run(&world, args));
}

#[test]
fn a_tampered_count_is_found_and_mended_in_a_folder() {
    let world = tampered();
    finds_and_mends(|args| world.run(&[args, &["--store", &world.url("data")]].concat()));
}

/// Attendance and boards: a day's count, a bit of it, a level, and somebody in the order of a board who never scored.
#[test]
fn attendance_and_boards_that_were_tampered_with_are_found_and_mended() {
    let world = World::new();
    world.seed("data", &[]);
    world.write("tally.toml", "[boards.b]\nties = \"dense\"\n");
    let url = world.url("data");
    let on = |args: &[&str]| world.run(&[args, &["--store", &url]].concat());
    for who in ["alice", "7"] {
        assert_eq!(on(&["attend", "mark", "daily", who, "--day", "2026-01-02"]).code, 0);
        assert_eq!(on(&["board", "set", "b", who, "5"]).code, 0);
    }
    let sound = on(&["verify"]);
    assert!(sound.code == 0 && sound.out.contains("everything adds up"), "{sound}");
    let store = Store::open(&world.path("data"), Options::default()).unwrap();
    let mut batch = Batch::new();
    batch.put(b"Pdaily\x002026-01-02", &[9]);
    // 2026-01-02 is the 20,455th day; whoever is called 7 is bit 7 of chunk 0.
    batch.delete(&[b"idaily\0", &20_455_u32.to_be_bytes()[..], &0_u64.to_be_bytes()].concat());
    let board = [b"b\0", &0_u64.to_be_bytes()[..]].concat();
    let level = [b"w", &board[..], &[1], b"5"].concat();
    batch.put(&level, &[&[0][..], &5_i64.to_be_bytes(), &7_u64.to_be_bytes()].concat());
    batch.put(&[&b"vw"[..], &board[..], &[0], &[1; 16], b"ghost"].concat(), b"");
    store.apply(&batch).unwrap();
    store.close();
    drop(store);

    let found = on(&["verify"]);
    assert_eq!(found.code, 3, "{found}");
    for word in
        ["daily", "2026-01-02", "7, number 7", "2 members have the score 5", "an order in the tables", "--repair"]
    {
        assert!(found.out.contains(word), "no `{word}` in: {found}");
    }
    let report = on(&["verify", "--repair", "--json"]).any_json();
    assert!(report["rows"].as_u64() > Some(5) && report["strayed"].as_u64() >= Some(4), "{report}");
    let mended = on(&["verify"]);
    assert!(mended.code == 0 && mended.out.contains("everything adds up"), "{mended}");
    assert_eq!(on(&["attend", "day", "daily", "2026-01-02", "--json"]).json()["count"], 2);
    let top = on(&["board", "top", "b", "--json"]).json();
    assert_eq!(top["items"].as_array().map(Vec::len), Some(2), "{top}");
}

/// Leaves a verification that has begun its first round behind, as a server that was killed does.
async fn leave_begun(world: &World) -> JobReply {
    let engine = Arc::new(Embedded::open(&world.path("data"), tally::embedded::Options::default()).unwrap());
    let catalog = Arc::new(Catalog::default());
    let (runner, running) =
        Runner::start(engine, catalog, SystemClock, RunnerOptions::default(), Arc::new(|_| {})).await.unwrap();
    let apply = async |command| match runner.apply(Call::system(command)).await.unwrap().reply.unwrap() {
        Reply::Job(job) => job,
        other => panic!("{other:?}"),
    };
    let begun = apply(Command::from(Verify { repair: true })).await;
    let of = Round { job: JobId::parse(&begun.job).unwrap(), number: 0 };
    apply(Command::from(Recount { of, step: Step::Begin })).await;
    drop(runner);
    running.await.unwrap();
    begun
}

#[test]
fn a_verification_goes_on_after_a_stop_and_its_report_is_kept() {
    let world = tampered();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let left = runtime.block_on(leave_begun(&world));
    let report = || {
        let server = world.serve();
        until("the verification ends", || runtime.block_on(report_of(&server, &left.job)))
    };
    let first = report();
    assert_eq!((&first["drifted"], &first["repaired"]), (&json!(1), &json!(1)), "{first}");
    assert_eq!(report(), first, "it is kept");
}

/// The report of a verification, if it has ended.
async fn report_of(server: &Served, job: &str) -> Option<Value> {
    let url = format!("{}/v1/jobs/{job}", server.base);
    let asked = reqwest::Client::new().get(url).bearer_auth(KEY).send().await.unwrap();
    let job: Value = asked.json().await.unwrap();
    job.get("report").cloned()
}

#[test]
fn only_an_admin_may_verify() {
    let world = World::new();
    let server = world.serve();
    let made = server.run(&world, &["key", "create", "--role", "service", "--name", "backend", "--json"]).json();
    server.run_as(&world, made["key"].as_str().unwrap(), &["verify"]).fails(1, "forbidden: ");
}
