//! `tally import redis`: sets become edges, drifted counters are reported, and doing it again changes nothing.

use std::path::PathBuf;
use std::process::Command;

use redis::cluster::ClusterClient;
use serde_json::{Value, json};
use tally_testing::redis::Options;
use tally_testing::{Cluster, Redis, free_address};

use crate::world::{KEY, Ran, World};

const SETS: &str = "comment:{}:liked_by";

/// A world with an empty store, and a Redis to import from.
pub(super) struct Old {
    pub(super) world: World,
    pub(super) redis: Redis,
}

impl Old {
    pub(super) fn new() -> Self {
        let world = World::new();
        world.seed("data", &[]);
        Self { world, redis: Redis::start(Options::default()).unwrap() }
    }

    /// Does some commands in the old Redis, each as a person types it.
    pub(super) fn ask(&self, commands: &[&str]) {
        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            let answer = self.redis.ask(&words).unwrap();
            assert!(!answer.contains("ERR"), "{command}: {answer}");
        }
    }

    /// An import into the store, not started yet.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let (url, store) = (self.redis.url(), self.world.url("data"));
        let mut command = self.world.tally();
        command.args(["import", "redis", "--url", &url, "--sets", SETS, "--store", &store]).args(args);
        command
    }

    pub(super) fn import(&self, args: &[&str]) -> Ran {
        crate::world::ran(&mut self.command(args))
    }

    /// An import's report, whatever its exit code.
    pub(super) fn report(&self, args: &[&str]) -> Value {
        self.import(&[args, &["--json"]].concat()).any_json()
    }

    pub(super) fn count(&self, object: &str) -> i64 {
        let store = self.world.url("data");
        let answer = self.world.run(&["count", "like", object, "--json", "--store", &store]).json();
        answer["count"].as_i64().unwrap()
    }

    pub(super) fn subjects(&self, object: &str) -> Vec<String> {
        let store = self.world.url("data");
        let list = self.world.run(&["list", "like", "--object", object, "--all", "--json", "--store", &store]).json();
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["subject"].as_str().unwrap().to_owned()).collect()
    }

    pub(super) fn is_sound(&self) {
        let verified = self.world.run(&["verify", "--store", &self.world.url("data")]);
        assert_eq!(verified.code, 0, "{verified}");
    }

    /// State files that are left.
    pub(super) fn states(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.world.path("")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_string_lossy().contains("tally-import-")).collect()
    }
}

pub(super) fn sums(report: &Value) -> [i64; 6] {
    ["objects", "members", "added", "present", "refused", "disagreed"].map(|name| report[name].as_i64().unwrap())
}

#[test]
fn sets_become_edges_and_doing_it_again_changes_nothing() {
    let old = Old::new();
    old.ask(&[
        "SADD comment:456:liked_by user:123 user:124 user:125",
        "SET comment:456:likes_count 3",
        "SADD comment:7:liked_by user:123",
        "SADD post:1:liked_by user:1",
        "SADD comment:7:disliked_by user:9",
    ]);
    let first = old.import(&["--json"]);
    assert_eq!((first.code, first.err.as_str()), (0, ""), "quiet when nobody watches: {first}");
    assert_eq!(sums(&first.any_json()), [2, 4, 4, 0, 0, 0], "{first}");
    assert_eq!((old.count("comment:456"), old.count("comment:7"), old.count("post:1")), (3, 1, 0));
    let mut subjects = old.subjects("comment:456");
    subjects.sort();
    assert_eq!(subjects, ["user:123", "user:124", "user:125"]);
    assert_eq!(sums(&old.report(&[])), [2, 4, 0, 4, 0, 0]);
    assert_eq!(old.count("comment:456"), 3);
    assert!(old.states().is_empty(), "what is done needs no state: {:?}", old.states());
    old.is_sound();
}

#[test]
fn names_are_as_the_command_says() {
    let old = Old::new();
    old.ask(&["SADD comment:{5}:liked_by user:1 guest", "SET n:5 2", "SADD comment:6:liked_by user:1"]);
    let url = old.redis.url();
    let store = old.world.url("data");
    let args = ["import", "redis", "--url", &url, "--sets", "comment:{{}}:liked_by", "--store", &store, "--json"];
    let named = ["--object", "post:{}", "--subject", "user:{}", "--counts", "n:{}"];
    let ran = old.world.run(&[&args[..], &named[..]].concat());
    let report = ran.any_json();
    assert_eq!((ran.code, sums(&report)), (1, [1, 2, 1, 0, 1, 1]), "{ran}");
    assert_eq!(report["refusals"][0]["member"], "guest");
    assert_eq!(report["refusals"][0]["reason"], "it is not like user:{}");
    assert_eq!(old.subjects("post:5"), ["1"]);
}

#[test]
fn a_counter_that_drifted_is_reported_and_the_set_wins() {
    let old = Old::new();
    old.ask(&[
        "SADD comment:1:liked_by a b c",
        "SET comment:1:likes_count 5",
        "SADD comment:2:liked_by a",
        "SET comment:2:likes_count 1",
        "SADD comment:3:liked_by a b",
        "SET comment:3:likes_count many",
        "SADD comment:4:liked_by a",
        "LPUSH comment:4:likes_count 1",
        // Nobody likes these any more, so they have no set.
        "SET comment:5:likes_count 2",
        "SET comment:6:likes_count 0",
    ]);
    old.world.seed("data", &[("comment:2", "zoe")]);
    let ran = old.import(&["--json"]);
    assert_eq!(ran.code, 0, "drift of the old counter is no failure: {ran}");
    let mut found = ran.any_json()["disagreements"].as_array().unwrap().clone();
    found.sort_by_key(|found| found["object"].to_string());
    let told: Vec<Value> = found
        .iter()
        .map(|found| json!([found["object"], found["members"], found["counter"], found["count"], found["why"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["comment:1", 3, 5, 3, ["the old counter was off by +2"]]),
            json!(["comment:2", 1, 1, 2, ["Tally has 1 more than the set"]]),
            json!(["comment:3", 2, null, 2, ["the counter comment:3:likes_count is not a whole number"]]),
            json!(["comment:4", 1, null, 1, ["comment:4:likes_count is not a counter"]]),
            json!(["comment:5", 0, 2, 0, ["the old counter was off by +2"]]),
        ]
    );
    let words = old.import(&[]);
    for word in ["Numbers that disagree:", "old counter", "off by +2", "Every member is an edge now."] {
        assert!(words.out.contains(word), "no `{word}` in: {words}");
    }
    old.is_sound();
}

#[test]
fn a_dry_run_changes_nothing_and_says_what_would_be() {
    let old = Old::new();
    old.ask(&["SADD comment:1:liked_by a b", "SET comment:1:likes_count 9", "SADD comment:2:liked_by a"]);
    old.world.seed("data", &[("comment:1", "a")]);
    let report = old.report(&["--dry-run"]);
    assert_eq!(sums(&report), [2, 3, 0, 0, 0, 1]);
    assert_eq!((&report["edges"], &report["dry_run"]), (&json!(1), &json!(true)), "{report}");
    assert_eq!((old.count("comment:1"), old.count("comment:2")), (1, 0));
    let words = old.import(&["--dry-run"]);
    assert!(words.code == 0 && words.out.contains("A dry run: nothing was written."), "{words}");
    assert!(old.states().is_empty());
}

#[test]
fn members_that_cannot_be_subjects_are_reported() {
    let old = Old::new();
    let long = "x".repeat(257);
    old.ask(&[&format!("SADD comment:1:liked_by good me bad\u{7} {long}"), "SADD comment:\u{1}:liked_by a b"]);
    old.redis.ask(&["SADD", "comment:1:liked_by", ""]).unwrap();
    for args in [&[][..], &["--dry-run"]] {
        let ran = old.import(&[args, &["--json"]].concat());
        let report = ran.any_json();
        assert_eq!((ran.code, &report["members"], &report["refused"]), (1, &json!(7), &json!(6)), "{ran}");
        let refused = report["refusals"].as_array().unwrap();
        let reason_of = |member: Value| {
            let found = refused.iter().find(|refused| refused["member"] == member);
            found.unwrap_or_else(|| panic!("no {member} in {report}"))["reason"].as_str().unwrap().to_owned()
        };
        assert_eq!(reason_of(json!("bad\u{7}")), "a subject has no control characters");
        assert_eq!(reason_of(json!(long)), "a subject has 1 to 256 bytes");
        assert_eq!(reason_of(json!("")), "it is empty");
        assert!(reason_of(json!("me")).contains("no subject's name"), "{report}");
        assert_eq!(reason_of(Value::Null), "an object's id has no control characters", "all members of that key");
    }
    assert_eq!(old.subjects("comment:1"), ["good"]);
    let words = old.import(&[]);
    assert!(words.out.contains("Members that were refused:") && !words.out.contains('\u{7}'), "{words}");
}

#[test]
fn edges_that_the_rules_refuse_are_reported() {
    let old = Old::new();
    old.world.write("tally.toml", "[relations.favorite]\nlimit_per_subject = 1\n");
    old.ask(&["SADD comment:1:liked_by a b", "SADD comment:2:liked_by a"]);
    let report = old.report(&["--relation", "favorite"]);
    assert_eq!(sums(&report), [2, 3, 2, 0, 1, 1]);
    let refused = &report["refusals"][0];
    assert_eq!((&refused["member"], &refused["code"]), (&json!("a"), &json!("limit_exceeded")));
    assert_eq!(report["disagreements"][0]["why"], json!(["1 member refused"]));
}

#[test]
fn a_dry_run_refuses_what_the_import_would() {
    let settings = "[relations.favorite]\nlimit_per_subject = 1\n[relations.reaction]\none_of = [\"wow\"]\n\
                    [relations.known]\nrequires_object = true\n";
    let old = Old::new();
    old.world.write("tally.toml", settings);
    // One subject in many sets, more than one part of a dry run.
    let script = "for n = 1, 1200 do redis.call('SADD', 'comment:' .. n .. ':liked_by', 'a', 'b' .. n) end";
    old.redis.ask(&["EVAL", script, "0"]).unwrap();
    let server = old.world.serve();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let suspended = reqwest::Client::new().post(format!("{}/v1/subjects/b7/suspend", server.base)).bearer_auth(KEY);
    assert_eq!(runtime.block_on(suspended.send()).unwrap().status().as_u16(), 202);
    let url = old.redis.url();
    let codes = |report: &Value| {
        let refusals = report["refusals"].as_array().unwrap().iter();
        let mut codes: Vec<String> = refusals.map(|refused| refused["code"].to_string()).collect();
        codes.sort();
        codes
    };
    for (relation, kind, refused) in [
        ("like", &[][..], 1),
        ("favorite", &[], 1_200),
        ("reaction", &[], 2_400),
        ("reaction", &["--kind", "no"], 2_400),
        ("reaction", &["--kind", "wow"], 1),
        ("known", &[], 2_400),
    ] {
        let import = ["import", "redis", "--url", &url, "--sets", SETS, "--json", "--relation", relation];
        let import = |more: &[&str]| server.run(&old.world, &[&import[..], kind, more].concat());
        let (dry, done) = (import(&["--dry-run"]), import(&[]));
        let (said, came) = (dry.any_json(), done.any_json());
        assert_eq!(came["refused"], refused, "{relation} {kind:?}");
        assert_eq!((&said["refused"], dry.code), (&came["refused"], done.code), "{relation} {kind:?}");
        assert_eq!(codes(&said), codes(&came), "{relation} {kind:?}");
    }
}

#[test]
fn keys_that_are_no_sets_are_skipped_and_sorted_sets_keep_their_order() {
    let old = Old::new();
    old.ask(&[
        "SET comment:1:liked_by x",
        "LPUSH comment:2:liked_by x",
        "ZADD comment:3:liked_by 30 c 10 a 20 b",
        "SADD comment:4:liked_by a",
    ]);
    let ran = old.import(&["--json"]);
    let report = ran.any_json();
    assert_eq!((ran.code, sums(&report)), (0, [2, 4, 4, 0, 0, 0]), "{ran}");
    assert_eq!((&report["skipped"], &report["sorted_sets"]), (&json!(2), &json!(1)));
    let skips = report["skips"].to_string();
    assert!(skips.contains("of type string") && skips.contains("of type list"), "{skips}");
    assert_eq!(old.subjects("comment:3"), ["c", "b", "a"], "newest first");
}

#[test]
fn a_server_takes_it_as_a_store_does() {
    let old = Old::new();
    old.ask(&["SADD comment:1:liked_by a b", "SADD comment:2:liked_by a bad\u{7}"]);
    old.world.write("tally.toml", "[bounds]\nbatch_commands_max = 1\n");
    let server = old.world.serve();
    let url = old.redis.url();
    let import = ["import", "redis", "--url", &url, "--sets", SETS, "--json"];
    let ran = server.run(&old.world, &import);
    assert_eq!((ran.code, sums(&ran.any_json())), (1, [2, 4, 3, 0, 1, 1]), "{ran}");
    let counted = server.run(&old.world, &["count", "like", "comment:1", "--json"]).json();
    assert_eq!(counted, json!({"count": 2}));
    let made = server.run(&old.world, &["key", "create", "--role", "read", "--name", "r", "--json"]).json();
    let refused = server.run_as(&old.world, made["key"].as_str().unwrap(), &import);
    refused.fails(1, "forbidden: this API key's role does not allow it");
    server.run_as(&old.world, "nobody", &import).fails(1, "unauthenticated");
    let elsewhere = [&import[..], &["--server", "http://127.0.0.1:1", "--key", KEY]].concat();
    old.world.run(&elsewhere).fails(1, "name another with --server");
}

#[test]
fn every_master_of_a_cluster_is_read() {
    let world = World::new();
    world.seed("data", &[]);
    let (url, store) = (Cluster::shared().unwrap(), world.url("data"));
    let nodes: Vec<String> =
        url.trim_start_matches("redis+cluster://").split(',').map(|node| format!("redis://{node}")).collect();
    let mut cluster = ClusterClient::new(nodes.clone()).unwrap().get_connection().unwrap();
    // Others use this cluster too.
    let prefix = format!("import{}", std::process::id());
    let objects = 60;
    for n in 0..objects {
        let set = format!("{prefix}:{n}:liked_by");
        let () = redis::cmd("SADD").arg(set).arg("a").arg("b").query(&mut cluster).unwrap();
        let count = if n == 0 { 9 } else { 2 };
        let () = redis::cmd("SET").arg(format!("{prefix}:{n}:likes_count")).arg(count).query(&mut cluster).unwrap();
    }
    let sets = format!("{prefix}:{{}}:liked_by");
    // By any of its nodes, and as a store in a cluster is written.
    for (source, added, present) in [(nodes[0].as_str(), 2 * objects, 0), (url, 0, 2 * objects)] {
        let ran = world.run(&["import", "redis", "--url", source, "--sets", &sets, "--store", &store, "--json"]);
        assert_eq!((ran.code, sums(&ran.any_json())), (0, [objects, 2 * objects, added, present, 0, 1]), "{ran}");
        assert_eq!(ran.any_json()["counters"], objects);
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line_without_secrets() {
    let old = Old::new();
    let store = old.world.url("data");
    let import = |url: &str, args: &[&str]| {
        let ran = old.world.run(&[&["import", "redis", "--url", url, "--store", &store][..], args].concat());
        assert!(!format!("{ran}").contains("hush"), "{ran}");
        ran
    };
    let sets = ["--sets", SETS];
    let nobody = format!("redis://u:hush@{}", free_address().unwrap());
    import(&nobody, &sets).fails(1, "cannot reach redis://u:***@127.0.0.1");
    import("mysql://u:hush@db", &sets).fails(2, "`mysql://u:***@db` is not the URL of a Redis");
    let locked = Redis::start(Options { password: Some("letmein".into()), ..Options::default() }).unwrap();
    let address = locked.address();
    import(&format!("redis://:hush@{address}"), &sets).fails(1, "user or password is wrong");
    import(&format!("redis://{address}"), &sets).fails(1, "NOAUTH");
    assert_eq!(import(&locked.url(), &sets).code, 0);

    let url = old.redis.url();
    import(&url, &["--sets", SETS, "--relation", "lik"]).fails(1, "there is no relation `lik`; did you mean `like`?");
    import(&url, &["--sets", "app:comment:{}:liked_by"]).fails(2, "such as --object 'post:{}'");
    for (pattern, words) in [("comment:*:liked_by", "has no hole {}"), ("{}:{}", "more than one hole")] {
        let ran = import(&url, &["--sets", pattern]);
        assert!(ran.code == 2 && ran.err.contains(words), "{ran}");
    }
    let none = import(&url, &sets);
    assert!(none.code == 0 && none.out.contains("No set in redis://127.0.0.1"), "{none}");
    assert!(old.states().is_empty());
}
