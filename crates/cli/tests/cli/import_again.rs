//! An import that was stopped: it goes on where it was, or begins anew where that is right.

use std::process::Stdio;

use serde_json::json;

use crate::import::{Old, sums};
use crate::world::until;

/// Fills the old Redis with one large set, one large sorted set and many small ones.
fn fill(old: &Old, small: usize, large: usize) {
    let users: Vec<String> = (0..large).map(|n| format!("user:{n}")).collect();
    for some in users.chunks(5_000) {
        let some = some.iter().map(String::as_str);
        let words: Vec<&str> = ["SADD", "comment:hot:liked_by"].into_iter().chain(some.clone()).collect();
        old.redis.ask(&words).unwrap();
        // Many have the same score, more than one page of them.
        let scored = some.flat_map(|user| [if user.len() < 9 { "1" } else { "2" }, user]);
        old.redis.ask(&["ZADD", "comment:sorted:liked_by"].into_iter().chain(scored).collect::<Vec<_>>()).unwrap();
    }
    let script = "for n = 1, ARGV[1] do redis.call('SADD', 'comment:' .. n .. ':liked_by', 'a', 'b' .. n)
        redis.call('SET', 'comment:' .. n .. ':likes_count', n % 100 == 0 and 3 or 2) end";
    old.redis.ask(&["EVAL", script, "0", &small.to_string()]).unwrap();
}

#[test]
fn an_import_that_was_killed_goes_on() {
    killed_and_again(4_000, 2_500, "{\"at\":{\"pass\":\"sets\"");
}

#[test]
fn an_import_that_was_killed_inside_a_large_set_goes_on() {
    killed_and_again(100, 12_000, "\"large\":[{");
}

/// Kills an import when its state says so, and lets the next one finish.
fn killed_and_again(small: usize, large: usize, when: &str) {
    let old = Old::new();
    fill(&old, small, large);
    let mut child = old.command(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it is under way", || {
        let text = old.states().first().map(|path| std::fs::read_to_string(path).unwrap()).unwrap_or_default();
        (text.contains(when) || child.try_wait().unwrap().is_some()).then_some(())
    });
    // SIGKILL, wherever it is.
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it ended before it could be killed");
    let report = old.report(&[]);
    let (members, drifted) = ((small * 2 + large * 2) as i64, (small / 100) as i64);
    let [objects, read, added, present, refused, disagreed] = sums(&report);
    assert_eq!((objects, read, refused, disagreed), (small as i64 + 2, members, 0, drifted), "{report}");
    assert_eq!((added + present, &report["resumed"]), (members, &json!(true)), "{report}");
    assert_eq!(report["disagreements"].as_array().unwrap().len() as i64, drifted, "the report covers all of it");
    assert_eq!((old.count("comment:hot"), old.count("comment:sorted")), (large as i64, large as i64));
    assert!(old.states().is_empty());
    old.is_sound();
}

#[test]
fn an_import_that_goes_on_into_a_store_that_was_emptied_begins_anew() {
    let old = Old::new();
    fill(&old, 4_000, 2_500);
    let mut child = old.command(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it is under way", || {
        let text = old.states().first().map(|path| std::fs::read_to_string(path).unwrap()).unwrap_or_default();
        (text.contains("\"newest\":[[") || child.try_wait().unwrap().is_some()).then_some(())
    });
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it ended before it could be killed");
    std::fs::remove_dir_all(old.world.path("data")).unwrap();
    old.world.seed("data", &[]);
    let ran = old.import(&["--json"]);
    let report = ran.any_json();
    assert_eq!((&report["resumed"], &report["added"]), (&json!(false), &json!(13_000)), "{ran}");
    assert!(ran.err.contains("is no longer there, so all of it is read again"), "{ran}");
    assert_eq!((old.count("comment:hot"), old.count("comment:sorted"), old.count("comment:7")), (2_500, 2_500, 2));
    assert!(old.states().is_empty());
    old.is_sound();
}

#[test]
fn a_state_is_good_for_one_import_of_one_run_of_redis() {
    let mut old = Old::new();
    fill(&old, 2_000, 3_000);
    let killed = |old: &Old| {
        let mut child = old.command(&["--state", "mine"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("it is under way", || {
            let text = std::fs::read_to_string(old.world.path("mine")).unwrap_or_default();
            (text.contains("\"at\"") || child.try_wait().unwrap().is_some()).then_some(())
        });
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "it ended before it could be killed");
    };
    killed(&old);
    old.import(&["--state", "mine", "--relation", "bookmark"]).fails(2, "is of another import, of comment:{}");
    let restarted = old.report(&["--state", "mine", "--restart"]);
    assert_eq!((&restarted["resumed"], &restarted["members"]), (&json!(false), &json!(10_000)));
    assert!(!old.world.path("mine").exists());

    // Redis forgets what its cursors meant when it is started again. Here it has nothing afterwards.
    killed(&old);
    old.redis.restart().unwrap();
    old.ask(&["SADD comment:1:liked_by a"]);
    let anew = old.report(&["--state", "mine"]);
    assert_eq!((&anew["resumed"], &anew["members"]), (&json!(false), &json!(1)));

    let notes = old.world.write("notes", "mine, not yours\n");
    old.import(&["--state", "notes"]).fails(2, "is not the state of an import");
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "mine, not yours\n");
}
