//! `tally room import-zset`: a queue that is a sorted set becomes a room's, in its order, whatever happens meanwhile.

use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tally::core::query::RoomQuery;
use tally::core::room::{Join, TicketReply};
use tally::core::{Auth, Name, SubjectId};
use tally_testing::Redis;
use tally_testing::redis::Options;

use crate::world::{Ran, World, ran, until};

const KEY: &str = "queue:{sale}";

/// An old queue, and a store with a room.
struct Old {
    world: World,
    redis: Redis,
}

impl Old {
    /// With a room that is on hold.
    fn new() -> Self {
        let old = Self { world: World::new(), redis: Redis::start(Options::default()).unwrap() };
        old.world.seed("data", &[]);
        let made = old.run(&["room", "create", "sale", "--mode", "hold", "--idle-ttl", "24h"]);
        assert_eq!(made.code, 0, "{made}");
        old
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.tally();
        command.args(args).args(["--store", &self.world.url("data")]);
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        ran(&mut self.command(args))
    }

    fn importing(&self, args: &[&str]) -> Command {
        let url = self.redis.url();
        self.command(&[&["room", "import-zset", "--url", &url, "--key", KEY, "sale"], args].concat())
    }

    fn import(&self, args: &[&str]) -> Value {
        ran(&mut self.importing(&[args, &["--json"]].concat())).json()
    }

    /// Members in the order of the sorted set.
    fn members(&self) -> Vec<String> {
        let answer = self.redis.ask(&["ZRANGE", KEY, "0", "-1"]).unwrap();
        answer.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// How many have ever joined.
    fn joined(&self) -> u64 {
        self.world.with_store("data", async |tally| {
            let room = tally.query(&RoomQuery { room: name() }, &server()).await.unwrap();
            room.joined
        })
    }

    /// The tickets of these, which they get by joining once more.
    fn tickets(&self, members: &[String]) -> Vec<TicketReply> {
        self.world.with_store("data", async |tally| {
            let mut tickets = Vec::new();
            for member in members {
                let token = Some(format!("zset:{KEY}"));
                let subject = Some(SubjectId::new(member).unwrap());
                let join = Join { room: name(), subject, token, fresh: String::new(), ip: None };
                tickets.push(tally.join(join, &server()).await.unwrap());
            }
            tickets
        })
    }

    /// Asserts that the room has them all, in their order, and nobody else.
    fn agrees(&self) {
        let members = self.members();
        let before = self.joined();
        let positions: Vec<Option<u64>> = self.tickets(&members).iter().map(|ticket| ticket.position).collect();
        assert_eq!(positions, (1..=members.len() as u64).map(Some).collect::<Vec<_>>());
        assert_eq!(self.joined(), before, "all of them had a ticket");
    }

    /// Adds so many, from one number on, some with equal scores and some that differ in the last digit.
    fn add(&self, from: u32, count: u32) {
        let script = "for n = tonumber(ARGV[1]), tonumber(ARGV[1]) + tonumber(ARGV[2]) - 1 do \
             local score = 1700000000 + math.floor(n / 7) \
             if n % 7 == 6 then score = string.format('%.17g', score + 0.0000002384185791015625) end \
             redis.call('ZADD', KEYS[1], score, string.format('user-%06d', (n * 7919) % 100000 + n * 100000)) end";
        let (from, count) = (from.to_string(), count.to_string());
        let answer = self.redis.ask(&["EVAL", script, "1", KEY, &from, &count]).unwrap();
        assert!(!answer.contains("ERR"), "{answer}");
    }
}

fn name() -> Name {
    Name::new("sale").unwrap()
}

fn server() -> Auth {
    Arc::new(json!({"kind": "system"}))
}

fn sums(report: &Value) -> [u64; 4] {
    ["members", "joined", "present", "refused"].map(|name| report[name].as_u64().unwrap())
}

#[test]
fn order_is_kept_and_doing_it_again_changes_nothing() {
    let old = Old::new();
    // More than a page with one score, and scores that a short text would make equal.
    let same = "for n = 1, 1500 do redis.call('ZADD', KEYS[1], 5, string.format('same-%05d', (n * 7) % 1500)) end";
    old.redis.ask(&["EVAL", same, "1", KEY]).unwrap();
    for (score, member) in [("1.0000000000000002", "b"), ("1", "c"), ("1.0000000000000004", "a"), ("-inf", "z")] {
        old.redis.ask(&["ZADD", KEY, score, member]).unwrap();
    }
    let dry = old.import(&["--dry-run"]);
    assert_eq!((sums(&dry), old.joined()), ([1_504, 0, 0, 0], 0));
    assert_eq!(sums(&old.import(&[])), [1_504, 1_504, 0, 0]);
    assert_eq!(old.members()[..4], ["z", "c", "b", "a"]);
    old.agrees();
    assert_eq!(sums(&old.import(&["--mode", "only"])), [1_504, 0, 1_504, 0]);
    old.add(1, 10);
    assert_eq!(sums(&old.import(&["--mode", "only"])), [1_514, 10, 1_504, 0]);
    old.agrees();
}

#[test]
fn killed_and_started_again_nobody_stands_twice() {
    let old = Old::new();
    old.add(0, 3_000);
    let mut child = old.importing(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // It asks for the second page when the first has joined.
    until("it is in the middle", || {
        let asked = old.redis.ask(&["INFO", "commandstats"]).unwrap();
        asked.contains("cmdstat_zrangebyscore:calls=2,").then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let before = old.joined();
    assert!((1_000..3_000).contains(&before), "it was killed in the middle: {before}");
    assert_eq!(sums(&old.import(&[])), [3_000, 3_000 - before, before, 0]);
    assert_eq!(old.joined(), 3_000);
    old.agrees();
}

#[test]
fn both_sides_agree_while_people_come_and_go() {
    let old = Old::new();
    old.add(0, 300);
    let out = old.world.path("shadow.out");
    let mut shadow = old.importing(&["--mode", "shadow", "--json"]);
    let mut child = shadow.stdout(File::create(&out).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    let reports = || -> Vec<Value> {
        let text = std::fs::read_to_string(&out).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    // Five come and two go, until it has compared some of them.
    let (mut next, mut looks) = (300, 0);
    until("two reports", || {
        looks += 1;
        if looks % 8 == 0 {
            old.add(next, 5);
            old.redis.ask(&["ZPOPMIN", KEY, "2"]).unwrap();
            next += 5;
        }
        (reports().len() >= 2).then_some(())
    });
    let during = reports().len();
    // Nobody comes or goes any more. The first report may have begun before.
    until("three more reports", || (reports().len() >= during + 3).then_some(()));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    let reports = reports();
    let [.., one, other, last] = reports.as_slice() else { panic!("{reports:?}") };
    assert!(last["joined"].as_u64() > Some(300) && last["left"].as_u64() > Some(0), "{last}");
    assert!(other["compared"].as_u64() > one["compared"].as_u64(), "{other}");
    assert_eq!(other["different"], one["different"], "all is the same when nobody moves: {other}");
    assert!(last["joined"].as_u64() <= Some(u64::from(next)), "nobody twice: {last}");
    old.agrees();
}

#[test]
fn a_difference_is_counted() {
    let old = Old::new();
    old.add(0, 20);
    // Somebody joined the room before everybody else was copied.
    old.tickets(&["early".to_owned()]);
    let ran = ran(&mut old.importing(&["--mode", "shadow", "--for", "2s", "--json"]));
    let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
    assert!(last["different"].as_u64() >= Some(20), "{last}");
}

#[test]
fn what_is_probably_wrong_is_said() {
    let old = Old::new();
    old.redis.ask(&["ZADD", KEY, "1", "a", "2", "two\u{7}", "3", "c"]).unwrap();
    let refused = ran(&mut old.importing(&["--json"]));
    assert_eq!((refused.code, sums(&refused.any_json())), (1, [3, 2, 0, 1]), "{refused}");
    assert!(refused.any_json()["refusals"][0].as_str().unwrap().contains("two"), "{refused}");
    old.redis.ask(&["SET", "text", "x"]).unwrap();
    let url = old.redis.url();
    let wrong = ["room", "import-zset", "--url", &url, "--key", "text", "sale"];
    old.run(&wrong).fails(1, "is a string, not a sorted set");
    let nowhere = ["room", "import-zset", "--url", &url, "--key", KEY, "nowhere"];
    old.run(&nowhere).fails(1, "room_not_found");
    assert_eq!(old.run(&["room", "create", "sale"]).code, 0);
    let warned = ran(&mut old.importing(&[]));
    assert!(warned.err.contains("tally room hold sale") && warned.err.contains("--idle-ttl 24h"), "{warned}");
    let off = ran(&mut old.importing(&["--mode", "off"]));
    assert!(off.code == 0 && off.out.contains("nothing was taken from it"), "{off}");
}

#[test]
fn a_server_takes_it_as_a_store_does() {
    let old = Old::new();
    old.add(0, 50);
    let server = old.world.serve();
    let url = old.redis.url();
    let import = ["room", "import-zset", "--url", &url, "--key", KEY, "sale", "--json"];
    assert_eq!(sums(&server.run(&old.world, &import).json()), [50, 50, 0, 0]);
    assert_eq!(sums(&server.run(&old.world, &import).json()), [50, 0, 50, 0]);
    server.run_as(&old.world, "nobody", &import).fails(1, "give a key with --server-key or TALLY_KEY");
    server.stop();
    old.agrees();
}
