//! A store in Redis from the command line: the same commands, a doctor that knows it, and what redis-cli shows.

use serde_json::{Value, json};
use tally_testing::redis::Options;
use tally_testing::{Cluster, Redis, free_address};

use crate::copy::RELATIONS;
use crate::doctor::{all_ok, status};
use crate::world::{Ran, World};

fn doctor(world: &World, url: &str) -> Ran {
    world.run(&["doctor", "--json", "--store", url])
}

/// What a check found, in words.
fn found(ran: &Ran, check: &str) -> String {
    let findings = ran.any_json()["findings"].as_array().unwrap().clone();
    let is_it = |finding: &&Value| finding["check"] == check;
    findings.iter().filter(is_it).map(|finding| finding["found"].as_str().unwrap()).collect()
}

#[test]
fn commands_work_beside_the_servers_of_a_redis() {
    let world = World::new();
    let redis = Redis::start(Options::durable()).unwrap();
    let url = redis.url();
    let on = |args: &[&str]| world.run(&[args, &["--store", &url]].concat());
    on(&["like", "post:1", "alice"]).fails(1, "there is no store under the prefix tally of redis://");
    world.run(&["copy", "--from", &url, "--to", &world.url("copy")]).fails(1, "there is no store under the prefix");
    assert!(found(&on(&["doctor", "--json"]), "keys").contains("the first server makes it"));
    assert_eq!(redis.ask(&["DBSIZE"]).unwrap(), "0", "a command makes no store");

    let server = world.serve_on(&url);
    assert_eq!(on(&["like", "post:1", "alice"]).code, 0);
    assert_eq!(server.run(&world, &["like", "post:1", "bob"]).code, 0);
    let counted = on(&["count", "like", "post:1", "--json"]);
    assert_eq!((counted.json(), counted.err.as_str()), (json!({"count": 2}), ""));
    assert_eq!(redis.ask(&["ZCARD", "tally:o:{post:1}:like"]).unwrap(), "2", "the count is a length");
    assert_eq!(redis.ask(&["ZRANGE", "tally:o:{post:1}:like", "0", "9"]).unwrap(), "bob\nalice", "newest first");
    let made = on(&["key", "create", "--role", "read", "--name", "dashboard", "--json"]).json();
    let listed = server.run(&world, &["key", "list", "--json"]).json();
    assert_eq!(listed["items"][0]["id"], made["id"], "{listed}");

    on(&["backup", "monday"]).fails(1, "BGSAVE");
    server.run(&world, &["backup", "monday"]).fails(1, "BGSAVE");
    world.run(&["restore", "monday", "--to", &url]).fails(2, "Redis starts from its own files");

    let ran = on(&["doctor", "--full", "--json"]);
    all_ok(&ran, "reach encryption version eviction durability replicas memory clock keys time counts");
    server.stop();
}

#[test]
fn what_does_not_add_up_in_redis_is_found() {
    let world = World::new();
    world.write("tally.toml", RELATIONS);
    let redis = Redis::start(Options::default()).unwrap();
    let url = redis.url();
    world.serve_on(&url).stop();
    let on = |args: &[&str]| world.run(&[args, &["--store", &url]].concat());
    for who in ["alice", "bob"] {
        assert_eq!(on(&["like", "post:1", who]).code, 0);
    }
    assert_eq!(on(&["relate", "reaction", "post:1", "bob", "--kind", "wow"]).code, 0);
    redis.ask(&["HINCRBY", "tally:o:{post:1}:reaction:kinds", "wow", "7"]).unwrap();
    let drifted = on(&["verify", "--json"]);
    let expected = json!([{"relation": "reaction", "object": "post:1", "kind": "wow", "stored": 8, "counted": 1}]);
    assert_eq!((drifted.code, &drifted.any_json()["drift"]), (3, &expected), "{drifted}");
    assert_eq!(on(&["verify", "--repair", "--json"]).json()["repaired"], 1);
    assert_eq!(on(&["count", "like", "post:1", "--json"]).json(), json!({"count": 2}));
    assert_eq!(on(&["verify", "--json"]).json()["drifted"], 0);

    redis.ask(&["ZREM", "tally:s:{alice}:like", "post:1"]).unwrap();
    let lost = on(&["verify", "--json"]);
    assert_eq!((lost.code, lost.any_json()["strays"].as_array().unwrap().len()), (3, 1), "{lost}");
    assert!(lost.out.contains("alice is in tally:o:{post:1}:like alone"), "{lost}");
    assert_eq!(on(&["doctor", "--full"]).code, 1);
    let mended = on(&["verify", "--repair"]);
    assert!(mended.code == 3 && mended.out.contains("1 of those above mended"), "{mended}");
    assert_eq!(on(&["verify", "--json"]).json()["strays"], json!([]));
    assert_eq!(
        on(&["count", "like", "post:1", "--json"]).json(),
        json!({"count": 2}),
        "the like is back on both sides"
    );
}

#[test]
fn the_doctor_says_what_is_wrong_with_a_redis() {
    let world = World::new();
    let options = Options { password: Some("right".into()), ..Options::default() };
    let redis = Redis::start(options.with("maxmemory-policy", "volatile-lru")).unwrap();
    let (url, at) = (redis.url(), redis.address());

    let evicts = doctor(&world, &url);
    assert_eq!((evicts.code, status(&evicts, "eviction").as_deref()), (1, Some("fail")), "{evicts}");
    assert!(found(&evicts, "eviction").contains("volatile-lru") && evicts.out.contains("may_vanish=1"), "{evicts}");
    let may = doctor(&world, &format!("{url}?may_vanish=1"));
    assert_eq!((may.code, status(&may, "eviction").as_deref()), (0, Some("warn")), "{may}");
    assert_eq!(status(&may, "durability").as_deref(), Some("warn"), "{may}");
    assert!(found(&may, "durability").contains("nothing is on disk: a restart loses everything"), "{may}");
    redis.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).unwrap();
    redis.ask(&["CONFIG", "SET", "save", "3600 1"]).unwrap();
    assert!(found(&doctor(&world, &url), "durability").contains("after the last snapshot"));
    redis.ask(&["CONFIG", "SET", "appendonly", "yes"]).unwrap();
    assert!(found(&doctor(&world, &url), "durability").contains("appendfsync is everysec: a crash"));

    let waits = doctor(&world, &format!("{url}?wait_replicas=1"));
    assert_eq!((waits.code, status(&waits, "replicas").as_deref()), (1, Some("fail")), "{waits}");
    redis.ask(&["CONFIG", "SET", "maxmemory", "100000"]).unwrap();
    let full = doctor(&world, &url);
    assert_eq!((full.code, status(&full, "memory").as_deref()), (1, Some("fail")), "{full}");
    redis.ask(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    redis.ask(&["SET", "tally:sys:{sys}:format", "99"]).unwrap();
    let newer = doctor(&world, &url);
    assert_eq!((newer.code, status(&newer, "keys").as_deref()), (1, Some("fail")), "{newer}");
    assert!(newer.out.contains("newer release"), "{newer}");

    let nobody = free_address().unwrap();
    for (url, words) in [
        (format!("redis://:hush@{at}"), "refuses the name or the password"),
        (format!("redis://:hush@{nobody}"), "Connection refused"),
        (format!("redis+cluster://:hush@{nobody}"), "Connection refused"),
        (format!("redis+cluster://:right@{at}"), "not a Cluster: write redis://"),
    ] {
        let ran = doctor(&world, &url);
        assert_eq!((ran.code, status(&ran, "reach").as_deref()), (1, Some("fail")), "{ran}");
        assert!(ran.out.contains(words) && !ran.out.contains("hush"), "no `{words}` in {ran}");
    }
}

#[test]
fn the_doctor_looks_at_every_master_of_a_cluster() {
    let world = World::new();
    let shared = Cluster::shared().unwrap();
    let url = format!("{shared}?prefix=doctor_{}", std::process::id());
    let on = |args: &[&str]| world.run(&[args, &["--store", &url]].concat());
    on(&["like", "post:1", "alice"]).fails(1, "there is no store under the prefix doctor_");
    world.serve_on(&url).stop();
    for n in 0..9 {
        assert_eq!(on(&["like", &format!("post:{n}"), "alice"]).code, 0);
    }
    assert_eq!(on(&["verify", "--json"]).json()["edges"], 9);
    let ran = on(&["doctor", "--full", "--json"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(found(&ran, "reach").contains("3 masters answer"), "{ran}");
    for (check, expected) in [("version", "ok"), ("replicas", "warn"), ("keys", "ok"), ("counts", "ok")] {
        assert_eq!(status(&ran, check).as_deref(), Some(expected), "{check}: {ran}");
    }
    let waits = doctor(&world, &format!("{url}&wait_replicas=1"));
    assert_eq!(status(&waits, "replicas").as_deref(), Some("ok"), "{waits}");
    let (_, hosts) = shared.split_once("://").unwrap();
    let one = doctor(&world, &format!("redis://{}", hosts.split(',').next().unwrap()));
    assert_eq!((one.code, status(&one, "version").as_deref()), (1, Some("fail")), "{one}");
    assert!(one.out.contains("write redis+cluster://"), "{one}");
}
