//! `tally doctor`: what it says of a sound store, of a running server, and of each thing that is wrong.

use serde_json::Value;

use crate::verify::tamper;
use crate::world::{Ran, World};

/// The status of a check in the report.
pub(crate) fn status(ran: &Ran, check: &str) -> Option<String> {
    let report = ran.any_json();
    let findings = report["findings"].as_array().unwrap().clone();
    let found = findings.into_iter().find(|finding| finding["check"] == check)?;
    assert_eq!(found["advice"] == Value::Null, found["status"] == "ok", "advice where it is needed: {found}");
    Some(found["status"].as_str().unwrap().to_owned())
}

/// The doctor has nothing to say against the store, and these checks among others are well.
pub(crate) fn all_ok(ran: &Ran, checks: &str) {
    assert_eq!(ran.code, 0, "{ran}");
    for check in checks.split(' ') {
        assert_eq!(status(ran, check).as_deref(), Some("ok"), "{check}: {ran}");
    }
}

fn doctor(world: &World, more: &[&str]) -> Ran {
    world.run(&[&["doctor", "--json", "--store", &world.url("data")], more].concat())
}

#[test]
fn a_sound_store_is_ok_throughout() {
    let world = World::new();
    world.seed("data", &[("post:42", "alice")]);
    let ran = doctor(&world, &["--full"]);
    all_ok(&ran, "settings permissions format lock open size writes tables clock checksums counts");
    assert!(status(&ran, "disk").is_some(), "{ran}");
    let table = world.run(&["doctor", "--store", &world.url("data")]);
    assert!(table.code == 0 && table.out.contains("│ ok") && table.err.is_empty(), "{table}");
}

#[test]
fn what_is_wrong_with_a_folder_fails() {
    let world = World::new();
    let missing = doctor(&world, &[]);
    assert_eq!((missing.code, status(&missing, "folder").as_deref()), (1, Some("fail")), "{missing}");

    world.seed("data", &[("post:42", "alice")]);
    tamper(&world, "post:42", 9);
    let quick = doctor(&world, &[]);
    assert_eq!(quick.code, 0, "only --full recounts: {quick}");
    let full = doctor(&world, &["--full"]);
    assert_eq!((full.code, status(&full, "counts").as_deref()), (1, Some("fail")), "{full}");

    let file = world.write("wrong.toml", "listn = 1\n");
    let settings = doctor(&world, &["--config", file.to_str().unwrap()]);
    assert_eq!((settings.code, status(&settings, "settings").as_deref()), (1, Some("fail")), "{settings}");
    assert_eq!(status(&settings, "open").as_deref(), Some("warn"), "{settings}");

    std::fs::write(world.path("data").join("FORMAT"), "tally store format 99\n").unwrap();
    let newer = doctor(&world, &[]);
    assert_eq!((newer.code, status(&newer, "format").as_deref()), (1, Some("fail")), "{newer}");
    assert!(newer.out.contains("newer release"), "{newer}");
    std::fs::write(world.path("data").join("FORMAT"), "tally store format 1\n").unwrap();
    let older = doctor(&world, &[]);
    assert_eq!((older.code, status(&older, "format").as_deref()), (1, Some("fail")), "{older}");
    assert!(older.out.contains("before the first release"), "{older}");
}

#[test]
fn a_damaged_table_fails_the_full_look() {
    let world = World::new();
    world.seed("source", &[("post:42", "alice")]);
    let dest = world.path("data");
    assert_eq!(world.run(&["backup", dest.to_str().unwrap(), "--store", &world.url("source")]).code, 0);
    let table = std::fs::read_dir(dest.join("rows/tables")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&table).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0xff;
    std::fs::write(&table, bytes).unwrap();
    let ran = doctor(&world, &["--full"]);
    assert_eq!(ran.code, 1, "{ran}");
}

#[test]
fn a_running_server_is_looked_at_from_outside() {
    let world = World::new();
    world.seed("data", &[("post:42", "alice")]);
    let server = world.serve();
    let folder = doctor(&world, &[]);
    assert_eq!((folder.code, status(&folder, "lock").as_deref()), (0, Some("ok")), "{folder}");
    assert!(folder.out.contains("another process has the store open"), "{folder}");
    assert_eq!(status(&folder, "open"), None, "{folder}");

    let ran = server.run(&world, &["doctor", "--url", &server.base, "--full", "--json"]);
    all_ok(&ran, "reach store version key clock size decisions counts");
    let stranger = server.run_as(&world, "wrong", &["doctor", "--url", &server.base, "--json"]);
    assert_eq!((stranger.code, status(&stranger, "key").as_deref()), (1, Some("fail")), "{stranger}");
    let base = server.base.clone();
    server.stop();
    let gone = world.run(&["doctor", "--url", &base, "--json"]);
    assert_eq!((gone.code, status(&gone, "reach").as_deref()), (1, Some("fail")), "{gone}");
}
