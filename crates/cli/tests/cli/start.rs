//! The server as a process: its first key, its settings, its log, its end.

use std::io::Write;
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::Value;

use crate::world::{KEY, World, until};

/// Sends the printed curl, by its words.
fn send(curl: &str) -> (u16, Value) {
    let words: Vec<&str> = curl.split_whitespace().collect();
    let ["curl", "-X", method, url, "-H", "'Authorization:", "Bearer", key] = words[..] else { panic!("{curl}") };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.request(method.parse().unwrap(), url).bearer_auth(key.trim_end_matches('\''));
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    })
}

#[test]
fn the_first_start_prints_a_key_that_works_and_the_second_prints_none() {
    let world = World::new();
    let server = world.serve_with(&[], None);
    let out = until("the key is printed", || Some(server.out()).filter(|out| out.contains("curl ")));
    let curl = out.lines().find(|line| line.contains("curl ")).unwrap().trim();
    let (status, answer) = send(curl);
    assert_eq!((status, &answer["changed"], &answer["count"]), (200, &Value::Bool(true), &Value::from(1)));
    let key = curl.split("Bearer ").nth(1).unwrap().trim_end_matches('\'').to_owned();
    assert_eq!(out.matches(&key).count(), 2, "alone, and in the curl: {out}");
    assert!(!server.log().contains(&key), "a key is no part of the log");
    server.stop();

    let server = world.serve_with(&[], None);
    assert_eq!(server.run_as(&world, &key, &["like", "post:42", "bob"]).code, 0, "the key is kept");
    assert_eq!(server.out(), "");
    server.stop();
}

#[test]
fn a_short_admin_key_is_taken_with_a_warning() {
    let world = World::new();
    let server = world.serve();
    assert_eq!(server.run(&world, &["like", "post:42", "alice"]).code, 0);
    let log = server.log();
    assert!(log.contains("TALLY_ADMIN_KEY has fewer than 16 characters") && !log.contains(KEY), "{log}");
    assert_eq!(server.out(), "", "whoever brings a key needs none");
}

#[test]
fn wrong_settings_are_all_told_before_anything_starts() {
    let world = World::new();
    world.write("tally.toml", "listn = 1\nsync = \"often\"\n");
    for args in [&["serve"][..], &[]] {
        let ran = world.run(args);
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.err.contains("tally.toml:1:1") && ran.err.contains("tally.toml:2:8"), "{ran}");
    }
    assert!(!world.path("tally-data").exists());
    let world = World::new();
    let server = world.serve();
    let taken = server.base.trim_start_matches("http://");
    world.run(&["--listen", taken, "--store", &world.url("other")]).fails(1, "cannot listen on");
}

#[test]
fn the_log_is_json_lines_when_asked() {
    let world = World::new();
    let server = world.serve_with(&["--log-format", "json", "--log-level", "debug"], Some(KEY));
    assert_eq!(server.run(&world, &["like", "post:42", "alice"]).code, 0);
    let log = until("the request is logged", || Some(server.log()).filter(|log| log.contains("\"status\":200")));
    let mut requests = 0;
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["target"].as_str().unwrap().starts_with("tally"), "libraries stay quiet: {line}");
        if line["message"] == "request" {
            requests += 1;
            assert!(line["status"].is_u64() && line["took_us"].is_u64(), "numbers are numbers: {line}");
            let texts = ["id", "method", "path"].map(|name| line[name].as_str().unwrap());
            assert!(texts.iter().all(|text| !text.is_empty() && !text.contains('"')), "{line}");
        }
    }
    assert!(requests > 0, "{log}");
    assert!(!log.contains(&format!("Bearer {KEY}")), "{log}");
}

#[test]
fn a_signal_stops_it_gracefully_and_a_second_one_at_once() {
    let world = World::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = world.serve();
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0), "{}", server.log());
        assert!(server.log().contains("everything that was answered is on disk"), "{}", server.log());
    }
    let mut server = world.serve();
    // A request whose body never comes is in flight for as long as the server is patient.
    let mut stream = TcpStream::connect(server.base.trim_start_matches("http://")).unwrap();
    let head = format!("PUT /v1/relations/like/post:1/alice HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n");
    stream
        .write_all(format!("{head}content-type: application/json\r\ncontent-length: 9\r\n\r\n{{").as_bytes())
        .unwrap();
    let like = server.run(&world, &["like", "post:2", "alice"]);
    assert_eq!(like.code, 0, "the stuck request came first: {like}");
    server.signal(Signal::TERM);
    until("it begins to stop", || server.log().contains("stopping: no new connections").then_some(()));
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(128 + 15), "{}", server.log());
    assert!(server.log().contains("stopping at once"), "{}", server.log());
}
