//! The folder itself: whose it is, what is left in it, and backups that meet.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod store_common;

use std::{os::unix::fs::PermissionsExt, path::Path, sync::mpsc};

use store_common::{commit, numbered, numbered_len, tiny};
use tally_embedded::store::{Batch, Store, StoreError, remove_left};
use tempfile::tempdir;

fn store_of(n: u64, path: &Path) -> Store {
    let store = Store::open(path, tiny()).unwrap();
    let mut batch = Batch::new();
    for n in 1..=n {
        numbered(&mut batch, n);
        commit(&store, &batch).unwrap();
    }
    store
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_store_and_its_backup_are_for_their_owner_alone() {
    let folder = tempdir().unwrap();
    let (path, copy) = (folder.path().join("deep/store"), folder.path().join("copy"));
    let store = store_of(100, &path);
    store.backup(&copy, |_, _| {}).unwrap();
    for store in [&path, &copy] {
        for inside in ["", "log", "rows"] {
            assert_eq!(mode(&store.join(inside)), 0o700, "{}", store.join(inside).display());
        }
        for own in ["LOCK", "FORMAT"] {
            assert_eq!(mode(&store.join(own)), 0o600, "{own}");
        }
        for segment in store_common::files(&store.join("log")) {
            assert_eq!(mode(&segment), 0o600, "{}", segment.display());
        }
    }
}

#[test]
fn a_folder_that_is_refused_is_left_as_it_was() {
    let folder = tempdir().unwrap();
    std::fs::write(folder.path().join("letters"), "dear").unwrap();
    let error = Store::open(folder.path(), tiny()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert_eq!(names(folder.path()), ["letters"]);
}

#[test]
fn two_backups_of_one_name_do_not_meet() {
    let folder = tempdir().unwrap();
    let store = store_of(300, &folder.path().join("store"));
    let copies = folder.path().join("copies");
    let target = copies.join("monday");
    let (begun, has_begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let first = scope.spawn({
            let (store, target) = (&store, &target);
            move || {
                store.backup(target, |_, _| {
                    begun.send(()).unwrap();
                    goes_on.recv().unwrap();
                })
            }
        });
        // Gone with this closure if it panics, so that the first one does not wait for ever.
        let go_on = go_on;
        // It has written everything, and is not done.
        has_begun.recv().unwrap();
        let second = store.backup(&target, |_, _| {}).unwrap_err();
        assert!(matches!(second, StoreError::BeingMade { .. }), "{second}");
        // One of another name goes its own way, and takes nothing of the first for left behind.
        store.backup(&copies.join("tuesday"), |_, _| {}).unwrap();
        go_on.send(()).unwrap();
        first.join().unwrap().unwrap();
    });
    let third = store.backup(&target, |_, _| {}).unwrap_err();
    assert!(matches!(third, StoreError::TargetExists { .. }), "{third}");
    assert_eq!(names(&copies), ["monday", "tuesday"]);
    assert_eq!(numbered_len(&Store::open(&target, tiny()).unwrap()), 300);
}

#[test]
fn what_a_killed_backup_left_goes_with_the_next() {
    let folder = tempdir().unwrap();
    let store = store_of(50, &folder.path().join("store"));
    let left = |name: &str| {
        let rows = folder.path().join(name).join("store/rows");
        std::fs::create_dir_all(&rows).unwrap();
        std::fs::write(rows.join("current"), "x").unwrap();
        std::fs::write(folder.path().join(name).join("LOCK"), "").unwrap();
    };
    left(".monday.partial");
    left(".tuesday.partial");
    store.backup(&folder.path().join("monday"), |_, _| {}).unwrap();
    assert_eq!(names(folder.path()), ["monday", "store"]);
    assert_eq!(numbered_len(&Store::open(&folder.path().join("monday"), tiny()).unwrap()), 50);

    left(".tuesday.partial");
    std::fs::create_dir(folder.path().join(".mine.partial")).unwrap();
    std::fs::write(folder.path().join(".mine.partial/letters"), "dear").unwrap();
    // Killed before it had its lock.
    std::fs::create_dir(folder.path().join(".wednesday.partial")).unwrap();
    remove_left(folder.path());
    assert_eq!(names(folder.path()), [".mine.partial", "monday", "store"], "what is not ours stays");
}
