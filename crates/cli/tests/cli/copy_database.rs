//! `tally copy` between a folder, PostgreSQL, Redis and a Cluster: the same answers everywhere, and on after a kill.

use std::process::{Child, Stdio};

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tally_testing::{Cluster, ClusterOptions, Postgres, Redis};

use crate::copy::{RELATIONS, answers, ask, fill, seed_many, toggle};
use crate::postgres::sql;
use crate::world::{Ran, World, until};

fn copy(world: &World, from: &str, to: &str) -> Ran {
    world.run(&["copy", "--from", from, "--to", to, "--json"])
}

#[test]
fn a_store_moves_into_a_database_and_back() {
    let database = format!("{}?sslmode=disable&schema=moved_{}", Postgres::shared().unwrap(), std::process::id());
    moves_on_by(&[database]);
}

#[test]
fn a_store_moves_into_redis_on_to_a_cluster_and_back() {
    let prefixed = |url: &str| format!("{url}?prefix=moved_{}", std::process::id());
    moves_on_by(&[prefixed(Redis::shared().unwrap()), prefixed(Cluster::shared().unwrap())]);
}

#[test]
fn nothing_is_copied_into_a_database_that_a_server_has_open() {
    is_not_copied_into(&format!(
        "{}?sslmode=disable&schema=served_{}",
        Postgres::shared().unwrap(),
        std::process::id()
    ));
}

#[test]
fn nothing_is_copied_into_a_cluster_that_a_server_has_open() {
    is_not_copied_into(&format!("{}?prefix=served_{}", Cluster::shared().unwrap(), std::process::id()));
}

/// Not while a server has it open; one that was killed is waited for.
fn is_not_copied_into(to: &str) {
    let world = World::new();
    seed_many(&world, "data", 10);
    let mut server = world.serve_on(to);
    copy(&world, &world.url("data"), to).fails(1, "a server has the store to copy to open; stop it first");
    server.signal(Signal::KILL);
    server.ended();
    assert_eq!(copy(&world, &world.url("data"), to).json()["edges"], 10);
}

/// Moves a store from a folder to one of these after the other, and into a folder again.
fn moves_on_by(stores: &[String]) {
    let world = World::new();
    world.write("tally.toml", RELATIONS);
    let server = world.serve();
    fill(&world, &server);
    let (_, toggled) = toggle(&server);
    let made = server.run(&world, &["key", "create", "--role", "read", "--name", "dashboard", "--json"]).json();
    let (_, job) = ask(&server, Method::POST, "/v1/subjects/mallory/suspend", |request| request);
    let job = format!("/v1/jobs/{}", job["job"].as_str().unwrap());
    until("mallory is hidden", || {
        (ask(&server, Method::GET, &job, |request| request).1["state"] == "done").then_some(())
    });
    let before = answers(&world, &server);
    server.stop();

    let same = |store: &str| {
        let server = world.serve_on(store);
        assert_eq!(answers(&world, &server), before, "{store}");
        assert_eq!(toggle(&server), (true, toggled.clone()), "the copy remembers what was answered");
        assert_eq!(server.run_as(&world, made["key"].as_str().unwrap(), &["count", "like", "post:1"]).code, 0);
        server.stop();
        // Straight on the store: that writes nothing down.
        let verified = world.run(&["verify", "--store", store, "--json"]).json();
        assert_eq!((&verified["edges"], &verified["strays"]), (&json!(8), &json!([])), "{verified}");
    };
    let (mut from, mut last) = (world.url("data"), String::new());
    for to in stores.iter().cloned().chain([world.url("back")]) {
        assert_eq!(copy(&world, &from, &to).json()["rows"], 13);
        same(&to);
        last = std::mem::replace(&mut from, to);
    }
    assert_eq!(copy(&world, &last, &from).json()["resumed_rows"], 13, "it was whole already");
}

/// Ends with its value, so that a test that fails leaves nothing behind.
struct Copying(Child);

impl Drop for Copying {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_copy_into_a_database_that_was_killed_goes_on() {
    let (shared, schema) = (Postgres::shared().unwrap(), format!("killed_{}", std::process::id()));
    let rows = || sql(shared, &format!("SELECT count(*) FROM {schema}.edge")).map_or(0, |rows| rows.parse().unwrap());
    goes_on_after_kills(&format!("{shared}?sslmode=disable&schema={schema}"), rows);
}

#[test]
fn a_copy_into_redis_that_was_killed_goes_on() {
    let redis = Redis::start(Default::default()).unwrap();
    goes_on_after_kills(&redis.url(), || rows_of(redis.ask(&["HGET", JOBS, COPY]).ok()));
}

/// Where Redis keeps the place that a copy has reached.
const JOBS: &str = "tally:job:{sys}";
const COPY: &str = "job_0000000000000000";

fn rows_of(place: Option<String>) -> u64 {
    place.and_then(|place| serde_json::from_str::<Value>(&place).ok()?["work"]["rows"].as_u64()).unwrap_or_default()
}

#[test]
fn a_copy_into_a_cluster_that_was_killed_goes_on() {
    let cluster = Cluster::start(ClusterOptions::default()).unwrap();
    let at = cluster.master_of_slot(cluster.slot_of(JOBS).unwrap()).unwrap();
    // The commit that wrote it may not be finished in other slots.
    goes_on_after_kills(&cluster.url(), || rows_of(cluster.node(at).ask(&["HGET", JOBS, COPY]).ok()));
}

/// Kills a copy to this store again and again, each time as soon as it has written something, and goes on at once.
fn goes_on_after_kills(to: &str, rows: impl Fn() -> u64) {
    const LIKES: usize = 12_000;
    const KILLS: usize = 3;
    let world = World::new();
    seed_many(&world, "data", LIKES);
    let from = world.url("data");
    for _ in 0..KILLS {
        let mut command = world.tally();
        command.args(["copy", "--from", &from, "--to", to]).stdout(Stdio::null()).stderr(Stdio::null());
        let before = rows();
        let mut copying = Copying(command.spawn().unwrap());
        until("it writes", || (rows() > before || copying.0.try_wait().unwrap().is_some()).then_some(()));
        // SIGKILL, wherever it is.
        copying.0.kill().unwrap();
        assert!(!copying.0.wait().unwrap().success(), "it ended before it could be killed");
    }
    let refused = world.run(&["count", "like", "post:1", "--store", to]);
    refused.fails(1, "this store is a half-made copy; finish it with: tally copy --from embedded:");
    let copied = copy(&world, &from, to).json();
    assert_eq!(copied["edges"], LIKES);
    assert!(copied["resumed_rows"].as_u64().unwrap() > 0, "{copied}");
    let verified = world.run(&["verify", "--store", to, "--json"]).json();
    assert_eq!((&verified["edges"], &verified["drifted"]), (&json!(LIKES), &json!(0)));
    let count = |store: &str| world.run(&["count", "like", "post:1", "--store", store, "--json"]).json();
    assert_eq!(count(to), count(&from));
}
