//! `tally backup` while writes go on, `tally restore` into a new place, and what both refuse.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::world::{KEY, World, until};

fn count(world: &World, store: &str) -> i64 {
    let answer = world.run(&["count", "like", "post:42", "--json", "--store", &world.url(store)]).json();
    answer["count"].as_i64().unwrap()
}

/// Every name below a folder.
fn listing(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_backup_while_writing_restores_to_a_store_that_adds_up() {
    let world = World::new();
    let server = world.serve();
    let answered = || server.run(&world, &["count", "like", "post:42", "--json"]).json()["count"].as_i64().unwrap();
    let done = AtomicBool::new(false);
    let (before, after) = std::thread::scope(|scope| {
        let _writer = scope.spawn(|| like_until(&done, &server.base));
        until("some likes", || (answered() > 20).then_some(()));
        let before = answered();
        let made = server.run(&world, &["backup", "monday", "--json"]).json();
        let after = answered();
        done.store(true, Ordering::Relaxed);
        assert!(made["path"].as_str().unwrap().ends_with("tally-backups/monday"), "{made}");
        (before, after)
    });
    let restored = world.run(&["restore", "tally-backups/monday", "--to", "restored", "--json"]).json();
    assert!(restored["rows"].as_u64().unwrap() > 0, "{restored}");
    let kept = count(&world, "restored");
    assert!((before..=after).contains(&kept), "{before} <= {kept} <= {after}");
    let sound = world.run(&["verify", "--store", &world.url("restored")]);
    assert_eq!(sound.code, 0, "{sound}");

    // With nobody writing, the copy has the same count, and the server serves from it.
    let last = answered();
    assert_eq!(server.run(&world, &["backup", "tuesday"]).code, 0);
    server.stop();
    std::fs::remove_dir_all(world.path("data")).unwrap();
    assert_eq!(world.run(&["restore", "tally-backups/tuesday", "--to", "data"]).code, 0);
    let server = world.serve();
    assert_eq!(server.run(&world, &["count", "like", "post:42", "--json"]).json(), json!({"count": last}));
}

/// Likes as fast as the server answers.
fn like_until(done: &AtomicBool, base: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        for number in 0.. {
            if done.load(Ordering::Relaxed) {
                break;
            }
            let url = format!("{base}/v1/relations/like/post:42/user-{number}");
            let answer = client.put(url).bearer_auth(KEY).send().await.unwrap();
            assert_eq!(answer.status(), 200);
        }
    });
}

#[test]
fn a_folder_is_backed_up_and_restored_without_a_server() {
    let world = World::new();
    world.seed("data", &[("post:42", "alice"), ("post:42", "bob")]);
    let dest = world.path("copies/one");
    let ran = world.run(&["backup", dest.to_str().unwrap(), "--store", &world.url("data")]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "quiet when nobody watches: {ran}");
    assert!(ran.out.contains("copies/one"), "{ran}");
    let before = listing(&dest);
    let restored = world.run(&["restore", dest.to_str().unwrap(), "--to", "new"]);
    assert_eq!(restored.code, 0, "{restored}");
    assert!(restored.out.contains("checked and restored to new"), "{restored}");
    assert_eq!(count(&world, "new"), 2);
    assert_eq!(listing(&dest), before, "the backup stays as it was");
    world
        .run(&["backup", dest.to_str().unwrap(), "--store", &world.url("data")])
        .fails(1, "exists already: name a folder that does not exist yet");
    let nowhere = world.run(&["backup", "--store", &world.url("data")]);
    nowhere.fails(2, "say where to");
}

#[test]
fn a_restore_refuses_what_it_could_ruin() {
    let world = World::new();
    world.seed("data", &[("post:42", "alice")]);
    assert_eq!(world.run(&["backup", "copy", "--store", &world.url("data")]).code, 0);
    world.run(&["restore", "copy", "--to", "data"]).fails(1, "exists already");
    assert_eq!(count(&world, "data"), 1);
    world.run(&["restore", "nothing", "--to", "new"]).fails(1, "there is no store in nothing");
    let server = world.serve();
    world.run(&["restore", "data", "--to", "new"]).fails(1, "is a store in use, not a backup");
    server.run(&world, &["backup", "../data"]).fails(2, "a name without `/`");
    assert!(!world.path("new").exists());
}

#[test]
fn a_damaged_backup_is_not_put_in_place() {
    let world = World::new();
    world.seed("data", &[("post:42", "alice"), ("post:42", "bob")]);
    assert_eq!(world.run(&["backup", "copy", "--store", &world.url("data")]).code, 0);
    let tables = world.path("copy").join("rows/tables");
    let table = std::fs::read_dir(&tables).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&table).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0xff;
    std::fs::write(&table, bytes).unwrap();
    let names = listing(&world.path(""));
    world.run(&["restore", "copy", "--to", "new"]).fails(1, "this backup is not sound, and nothing was restored");
    assert_eq!(listing(&world.path("")), names, "nothing is left behind");
}
