//! `tally salvage`: a damaged store says how what is left of it is saved, and that works. And whose files these are.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::world::World;

/// A store of which one answered write cannot be read any more.
fn damaged() -> World {
    let world = World::new();
    let names: Vec<String> = (0..20).map(|number| format!("user-{number}")).collect();
    world.seed("data", &names.iter().map(|name| ("post:42", name.as_str())).collect::<Vec<_>>());
    let segment = world.path("data/log/000000000001.log");
    let mut bytes = std::fs::read(&segment).unwrap();
    // Where the first like stands, behind what was declared.
    let like = bytes.windows(6).position(|text| text == b"user-0").unwrap();
    bytes[like] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    world
}

#[test]
fn a_damaged_store_names_the_command_that_saves_what_is_left() {
    let world = damaged();
    let (path, url) = (world.path("data"), world.url("data"));
    let command = format!("tally salvage {} --to NEW", path.display());
    let serve = world.run(&["serve", "--listen", "127.0.0.1:0", "--store", &url]);
    assert!(serve.code == 1 && serve.err.contains(&command), "{serve}");
    let doctor = world.run(&["doctor", "--store", &url]);
    let words = doctor.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(doctor.code == 1 && words.contains("tally salvage"), "{doctor}");

    let salvage = world.run(&["salvage", path.to_str().unwrap(), "--to", "new"]);
    assert_eq!(salvage.code, 0, "{salvage}");
    assert!(salvage.out.contains("Lost:") && salvage.out.contains("the batches 2 to 2"), "{salvage}");
    assert!(salvage.out.contains("tally verify --repair --store embedded:new"), "{salvage}");
    let repaired = world.run(&["verify", "--repair", "--store", &world.url("new")]);
    assert_eq!(repaired.code, 0, "{repaired}");
    let count = world.run(&["count", "like", "post:42", "--json", "--store", &world.url("new")]).json();
    assert_eq!(count["count"], 19, "all but the one that cannot be read");
    let still = world.run(&["serve", "--listen", "127.0.0.1:0", "--store", &url]);
    assert_eq!(still.code, 1, "the damaged one is as it was: {still}");
}

#[test]
fn salvage_refuses_what_it_could_ruin() {
    let world = World::new();
    world.seed("data", &[("post:42", "alice")]);
    let whole = world.run(&["salvage", "data", "--to", "new", "--json"]).json();
    assert_eq!(whole["lost"], serde_json::json!([]), "{whole}");
    world.run(&["salvage", "data", "--to", "new"]).fails(1, "exists already");
    world.run(&["salvage", "nothing", "--to", "other"]).fails(1, "has nothing of a store in it");
    let _server = world.serve();
    world.run(&["salvage", "data", "--to", "other"]).fails(1, "is open in another process");
    assert!(!world.path("other").exists());
}

fn assert_private(path: &Path) {
    let meta = path.metadata().unwrap();
    let expected = if meta.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(meta.permissions().mode() & 0o777, expected, "{}", path.display());
    if meta.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| assert_private(&entry.unwrap().path()));
    }
}

#[test]
fn every_file_of_a_store_its_backups_and_what_is_restored_is_private() {
    let world = World::new();
    let server = world.serve();
    assert_eq!(server.run(&world, &["like", "post:42", "alice"]).code, 0);
    assert_eq!(server.run(&world, &["backup", "monday"]).code, 0);
    server.stop();
    world.serve().stop();
    assert_eq!(world.run(&["restore", "tally-backups/monday", "--to", "restored"]).code, 0);
    assert_eq!(world.run(&["salvage", "data", "--to", "salvaged"]).code, 0);
    for folder in ["data", "tally-backups", "restored", "salvaged"] {
        assert_private(&world.path(folder));
    }
}

#[test]
fn backups_of_one_name_do_not_meet_and_a_killed_one_leaves_nothing() {
    let world = World::new();
    world.seed("data", &[("post:42", "alice")]);
    let left = world.path("tally-backups/.sunday.partial/store");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.with_file_name("LOCK"), "").unwrap();
    let server = world.serve();
    assert_eq!(std::fs::read_dir(world.path("tally-backups")).unwrap().count(), 0, "cleaned at the start");
    let codes: Vec<i32> = std::thread::scope(|scope| {
        let backup = || server.run(&world, &["backup", "monday"]);
        let running: Vec<_> = (0..4).map(|_| scope.spawn(backup)).collect();
        running.into_iter().map(|thread| thread.join().unwrap().code).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(world.run(&["restore", "tally-backups/monday", "--to", "restored"]).code, 0);
    assert_eq!(std::fs::read_dir(world.path("tally-backups")).unwrap().count(), 1);
}

#[test]
fn a_copy_that_is_refused_leaves_a_strangers_folder_as_it_was() {
    let world = World::new();
    world.seed("data", &[("post:42", "alice")]);
    std::fs::create_dir(world.path("mine")).unwrap();
    world.write("mine/letters", "dear");
    let copy = world.run(&["copy", "--from", &world.url("data"), "--to", &world.url("mine")]);
    assert_eq!(copy.code, 1, "{copy}");
    assert_eq!(std::fs::read_dir(world.path("mine")).unwrap().count(), 1);
    let server = world.serve();
    let other = World::new();
    other.seed("data", &[]);
    let copy = world.run(&["copy", "--from", &other.url("data"), "--to", &world.url("data")]);
    copy.fails(1, "is open in another process");
    server.stop();
}
