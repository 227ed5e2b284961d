//! What can be done to a Redis and to a cluster of them, and that nothing of them stays behind.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

mod common;

use common::{wait_until_gone, with_services};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;
use tally_testing::redis::cluster::{REDIS_CLUSTER_VARIABLE, Role};
use tally_testing::redis::{Options, REDIS_VARIABLE, programs};
use tally_testing::{Cluster, ClusterOptions, Proxy, Redis};

/// Where its files are.
fn folder(redis: &Redis) -> PathBuf {
    redis.ask(&["CONFIG", "GET", "dir"]).unwrap().lines().nth(1).unwrap().into()
}

#[test]
fn a_life() {
    assert!(!programs().is_empty(), "Redis is not installed");
    for program in programs() {
        let options = Options { program: Some(program), ..Options::durable() }.with("maxmemory", "7mb");
        let mut redis = Redis::start(options).unwrap();
        let (url, first) = (redis.url(), redis.pid());
        assert_eq!(url, format!("redis://127.0.0.1:{}", redis.port()));
        assert_eq!(redis.ask(&["CONFIG", "GET", "maxmemory"]).unwrap(), "maxmemory\n7340032");
        assert!(redis.memory_bytes() > 0);
        assert_eq!(redis.ask(&["SET", "kept", "stopped"]).unwrap(), "OK");
        redis.restart().unwrap();
        assert_ne!(redis.pid(), first);
        assert_eq!(redis.url(), url);
        assert_eq!(redis.ask(&["GETSET", "kept", "killed"]).unwrap(), "stopped");

        redis.kill().unwrap();
        assert_eq!((redis.pid(), redis.memory_bytes(), redis.is_alive()), (None, 0, false));
        assert!(TcpStream::connect(redis.address()).is_err());
        redis.start_again().unwrap();
        assert_eq!(redis.ask(&["GET", "kept"]).unwrap(), "killed");

        let mut client = TcpStream::connect(redis.address()).unwrap();
        redis.pause().unwrap();
        assert!(!redis.is_alive());
        client.write_all(b"PING\r\n").unwrap();
        client.set_read_timeout(Some(Duration::from_millis(150))).unwrap();
        assert!(client.read(&mut [0]).is_err(), "a paused server answers nobody");
        redis.go_on().unwrap();
        client.set_read_timeout(None).unwrap();
        assert_eq!(client.read(&mut [0; 16]).unwrap(), "+PONG\r\n".len());

        let folder = folder(&redis);
        assert!(folder.exists());
        redis.stop().unwrap();
        assert!(redis.stop().is_err());
        drop(redis);
        assert!(!folder.exists());
    }
}

#[test]
fn an_answer_is_a_text() {
    let redis = Redis::start(Options::default()).unwrap();
    let answers: [(&[&str], &str); 5] = [
        (&["GET", "nothing"], ""),
        (&["RPUSH", "list", "a b", "ü\r\n", ""], "3"),
        (&["LRANGE", "list", "0", "-1"], "a b\nü\r\n\n"),
        (&["LRANGE", "nothing", "0", "-1"], ""),
        (&["EVAL", "return {1, {'two', false}, 3}", "0"], "1\ntwo\n\n3"),
    ];
    for (words, answer) in answers {
        assert_eq!(redis.ask(words).unwrap(), answer, "{words:?}");
    }
    let refused = format!("{:#}", redis.ask(&["GET", "list"]).unwrap_err());
    assert!(refused.contains("WRONGTYPE"), "{refused}");
}

#[test]
fn a_password_is_asked_for() {
    let options = Options { password: Some("secret".into()), ..Options::default() };
    let redis = Redis::start(options.clone()).unwrap();
    assert_eq!(redis.ask(&["PING"]).unwrap(), "PONG");
    assert_eq!(redis.url(), format!("redis://:secret@{}", redis.address()));
    let proxy = Proxy::start(redis.address()).unwrap();
    assert_eq!(redis.url_through(&proxy), format!("redis://:secret@{}", proxy.address()));

    let cluster = Cluster::start(ClusterOptions { masters: 1, node: options, ..ClusterOptions::default() }).unwrap();
    let [master, replica] = cluster.nodes() else { panic!("a master and a replica") };
    assert_eq!(cluster.url(), format!("redis+cluster://:secret@{},{}", master.address(), replica.address()));
}

#[test]
fn a_paused_or_killed_one_is_cleaned_up_too() {
    for kill in [true, false] {
        let mut redis = Redis::start(Options::default()).unwrap();
        let folder = folder(&redis);
        if kill {
            redis.kill().unwrap();
        } else {
            redis.pause().unwrap();
        }
        drop(redis);
        assert!(!folder.exists());
    }
}

#[test]
fn a_killed_master_is_replaced() {
    let mut cluster = Cluster::start(ClusterOptions::default()).unwrap();
    assert_eq!(cluster.url().split(',').count(), 6);
    let roles: Vec<Role> = cluster.nodes().iter().map(|node| node.role().unwrap()).collect();
    assert_eq!(roles, [[Role::Master; 3], [Role::Replica; 3]].concat());
    let slots: Vec<_> = cluster.nodes().iter().flat_map(|node| node.slots().unwrap()).collect();
    assert_eq!(slots, [0..=5460, 5461..=10921, 10922..=16383]);
    assert_eq!((0..3).map(|at| cluster.replica_of(at).unwrap()).collect::<Vec<_>>(), [3, 4, 5]);

    let master = cluster.master_of_slot(cluster.slot_of("kept").unwrap()).unwrap();
    let replica = cluster.replica_of(master).unwrap();
    cluster.node(master).ask(&["SET", "kept", "before"]).unwrap();
    cluster.wait_until_healthy().unwrap();
    cluster.kill(master).unwrap();
    assert!(cluster.node(master).role().is_err());
    cluster.wait_for_failover(master).unwrap();
    assert_eq!(cluster.master_of_slot(cluster.slot_of("kept").unwrap()).unwrap(), replica);
    assert_eq!(cluster.node(replica).ask(&["GETSET", "kept", "after"]).unwrap(), "before");

    cluster.start_again(master).unwrap();
    cluster.wait_until_healthy().unwrap();
    assert_eq!(cluster.node(master).role().unwrap(), Role::Replica);
    assert_eq!(cluster.replica_of(replica).unwrap(), master);
    // And back, with a master that only stands still.
    cluster.pause(replica).unwrap();
    cluster.wait_for_failover(replica).unwrap();
    assert_eq!(cluster.node(master).ask(&["GET", "kept"]).unwrap(), "after");
    cluster.go_on(replica).unwrap();
    cluster.wait_until_healthy().unwrap();
    assert_eq!(cluster.node(replica).role().unwrap(), Role::Replica);
}

#[test]
fn a_slot_moves_with_its_keys() {
    let cluster = Cluster::start(ClusterOptions { node: Options::durable(), ..ClusterOptions::default() }).unwrap();
    let slot = cluster.slot_of("{slot}").unwrap();
    let from = cluster.master_of_slot(slot).unwrap();
    let to = (from + 1) % 3;
    let ask = |at: usize, words: &[&str]| cluster.node(at).ask(words).map_err(|error| format!("{error:#}"));
    let keys: Vec<String> = (0..5).map(|key| format!("{{slot}}{key}")).collect();
    for key in &keys {
        ask(from, &["SET", key, "there"]).unwrap();
    }
    assert!(cluster.move_keys(slot, 2).is_err(), "it does not move yet");
    assert!(cluster.begin_move(slot, from).is_err(), "it is there");

    cluster.begin_move(slot, to).unwrap();
    assert_eq!(cluster.move_keys(slot, 2).unwrap(), 2);
    let answers: Vec<_> = keys.iter().map(|key| ask(from, &["GET", key])).collect();
    assert_eq!(answers.iter().filter(|answer| answer.as_deref() == Ok("there")).count(), 3);
    assert_eq!(answers.iter().filter(|answer| answer.as_ref().is_err_and(|it| it.contains("ASK"))).count(), 2);
    assert!(cluster.end_move(slot).is_err(), "keys are left");
    assert_eq!(cluster.master_of_slot(slot).unwrap(), from);

    assert_eq!(cluster.move_keys(slot, 100).unwrap(), 3);
    assert_eq!(cluster.move_keys(slot, 100).unwrap(), 0);
    cluster.end_move(slot).unwrap();
    cluster.wait_until_healthy().unwrap();
    assert_eq!(cluster.master_of_slot(slot).unwrap(), to);
    assert_eq!(ask(to, &["EXISTS", &keys[0], &keys[1], &keys[2], &keys[3], &keys[4]]).unwrap(), "5");
    assert!(ask(from, &["GET", &keys[0]]).unwrap_err().contains("MOVED"));

    cluster.move_slot(slot, from).unwrap();
    assert_eq!(ask(from, &["GET", &keys[0]]).unwrap(), "there");
}

#[test]
fn the_shared_ones_are_one() {
    let url = Redis::shared().unwrap();
    assert!(url.starts_with("redis://127.0.0.1:"), "{url}");
    assert_eq!(Redis::shared().unwrap(), url);
    let url = Cluster::shared().unwrap();
    assert!(url.starts_with("redis+cluster://127.0.0.1:"), "{url}");
    assert_eq!(Cluster::shared().unwrap(), url);
}

#[test]
fn a_kill_leaves_nothing_behind() {
    let script = format!("echo \"${REDIS_VARIABLE},${REDIS_CLUSTER_VARIABLE}\"; cat");
    let mut running = with_services(&script).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let urls = lines.next().unwrap().unwrap();
    let addresses: Vec<&str> = urls.split(',').map(|url| url.rsplit('/').next().unwrap()).collect();
    assert_eq!(addresses.len(), 7, "{urls}");
    let folders: Vec<PathBuf> = addresses.iter().map(|address| folder_at(address)).collect();

    running.kill().unwrap();
    running.wait().unwrap();
    for (address, folder) in addresses.iter().zip(folders) {
        wait_until_gone(&folder);
        assert!(TcpStream::connect(address).is_err());
    }
}

/// The folder of a server that somebody else started.
fn folder_at(address: &str) -> PathBuf {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"CONFIG GET dir\r\n").unwrap();
    // `*2`, `$3`, `dir`, the length of the path, the path.
    let folder = PathBuf::from(BufReader::new(stream).lines().nth(4).unwrap().unwrap());
    assert!(folder.is_dir(), "{}", folder.display());
    folder
}
