//! Files that are cut, newer, or in use by someone else.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::*;

const LIKES: usize = 200;

/// A store that was killed after likes of `fan-0`, `fan-1`, … in this order.
async fn killed_store() -> (Server, PathBuf) {
    let mut server = Server::start("").await;
    let client = server.client();
    for n in 0..LIKES {
        client.like("post:1", &format!("fan-{n}")).await;
    }
    server.kill();
    let store = server.store().to_owned();
    (server, store)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The log segment that was written last, and how many bytes of it were used.
fn newest_segment(store: &Path) -> (PathBuf, usize) {
    let segments = fs::read_dir(store.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let is_spare = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("spare-");
    let newest = segments.filter(|path| !is_spare(path)).max().unwrap();
    let used = fs::read(&newest).unwrap().iter().rposition(|byte| *byte != 0).unwrap() + 1;
    (newest.strip_prefix(store).unwrap().to_owned(), used)
}

fn cut(path: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

/// What a refusal must be: words about the damage, and no panic.
fn is_clear(words: &str) {
    assert!(!words.contains("panicked"), "{words}");
    assert!(words.contains("damaged") && words.contains("log"), "{words}");
}

#[tokio::test]
async fn a_cut_log_opens_to_a_consistent_prefix_or_is_refused_clearly() {
    let (_original, store) = killed_store().await;
    let (segment, used) = newest_segment(&store);
    let mut opened = 0;
    let places = (0..14).map(|n| used * (n * 5 % 14) / 13 + n * 3).chain([0, 1, used - 1, used, used + 1]);
    for at in places {
        let folder = TempDir::new().unwrap();
        let damaged = folder.path().join("store");
        copy(&store, &damaged);
        cut(&damaged.join(&segment), at as u64);
        let server = match Server::try_start_on(&damaged).await {
            Ok(server) => server,
            Err(words) => {
                is_clear(&words);
                continue;
            }
        };
        opened += 1;
        let client = server.client();
        let mut subjects = client.subjects("like", "post:1").await;
        subjects.reverse();
        let prefix: Vec<String> = (0..subjects.len()).map(|n| format!("fan-{n}")).collect();
        assert_eq!(subjects, prefix, "cut at {at} of {used}");
        assert!(at < used || subjects.len() == LIKES, "nothing was cut off at {at} of {used}");
        assert_eq!(client.verified().await, subjects.len() as u64);
        assert_eq!(client.like("post:1", "newcomer").await["count"], subjects.len() as i64 + 1);
    }
    assert!(opened >= 2, "at least what lost nothing opens");
}

#[tokio::test]
async fn a_missing_log_is_refused_clearly() {
    let (_original, store) = killed_store().await;
    let (segment, _) = newest_segment(&store);
    fs::remove_file(store.join(segment)).unwrap();
    is_clear(&Server::try_start_on(&store).await.err().expect("answered writes would be lost"));
}

#[tokio::test]
async fn a_second_server_on_the_same_store_is_refused_clearly() {
    let server = Server::start("").await;
    server.client().like("post:1", "alice").await;
    let words = Server::try_start_on(server.store()).await.err().expect("the store is taken");
    assert!(words.contains(server.store().to_str().unwrap()), "{words}");
    assert!(words.contains("in use") || words.contains("another process"), "{words}");
    assert_eq!(server.client().count("like", "post:1").await, 1, "the first goes on");
}

#[tokio::test]
async fn a_store_of_a_newer_release_is_refused_and_left_alone() {
    let mut server = Server::start("").await;
    server.client().like("post:1", "alice").await;
    server.stop().await;
    let format = server.store().join("FORMAT");
    let own = fs::read_to_string(&format).unwrap();
    fs::write(&format, "tally store format 999\n").unwrap();
    let words = Server::try_start_on(server.store()).await.err().expect("it cannot know that format");
    assert!(words.contains("format 999") && words.contains("newer"), "{words}");
    fs::write(&format, own).unwrap();
    server.restart().await;
    assert_eq!(server.client().count("like", "post:1").await, 1);
}

#[tokio::test]
async fn a_folder_of_something_else_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("holiday.jpg"), "a beach").unwrap();
    let words = Server::try_start_on(folder.path()).await.err().expect("that is not a store");
    assert!(words.contains(folder.path().to_str().unwrap()), "{words}");
    assert_eq!(fs::read_to_string(folder.path().join("holiday.jpg")).unwrap(), "a beach");
}
