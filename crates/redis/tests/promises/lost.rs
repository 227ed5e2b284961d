//! Commits that arrive late or twice: done once, and never done after they were called off.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tally_testing::{Cut, Direction, Proxy, holds};

use crate::network::proxied;
use crate::support::{Store, toggle, unavailable};

/// Whether these bytes ask for a commit: only that names a record.
pub(crate) fn is_commit(direction: Direction, bytes: &[u8]) -> bool {
    direction == Direction::Request && holds(bytes, "alone") && holds(bytes, ":t:{")
}

/// Loses every commit before it arrives, and keeps the first.
fn keep_commits(proxy: &Proxy) -> Arc<Mutex<Vec<u8>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    proxy.cut_when(Cut::Before, move |direction, bytes| {
        let found = is_commit(direction, bytes);
        let mut kept = keep.lock().unwrap();
        if found && kept.is_empty() {
            kept.extend_from_slice(bytes);
        }
        found
    });
    kept
}

/// Sends what was kept, as a network would that had held it back. Gives the first answer.
pub(crate) fn send_late(url: &str, bytes: &[u8]) -> String {
    let address = url.split_once("://").unwrap().1.split_once('?').unwrap().0;
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_called_off_is_refused_when_it_arrives() {
    let (proxy, url, direct) = proxied("&timeout_ms=400");
    let store = Store::open(&url).await;
    store.add("post:1").await.unwrap();
    let kept = keep_commits(&proxy);
    let why = unavailable(store.add("post:1").await);
    assert!(!why.contains("not known"), "it is certain that it was not done: {why}");
    proxy.pass();
    let kept = kept.lock().unwrap().clone();
    let answer = send_late(&direct, &kept);
    assert!(answer.contains("cancelled"), "{answer}");
    assert_eq!(Store::open(&direct).await.count("post:1").await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_done_is_not_done_again_when_it_arrives_twice() {
    let (proxy, url, direct) = proxied("");
    let store = Store::open(&url).await;
    store.add("post:1").await.unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    proxy.cut_when(Cut::Before, move |direction, bytes| {
        if is_commit(direction, bytes) {
            keep.lock().unwrap().extend_from_slice(bytes);
        }
        false
    });
    store.add("post:1").await.unwrap();
    proxy.pass();
    let kept = kept.lock().unwrap().clone();
    for _ in 0..2 {
        let answer = send_late(&direct, &kept);
        assert!(answer.contains("done"), "{answer}");
    }
    assert_eq!(Store::open(&direct).await.count("post:1").await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_lost_and_then_found_in_conflict_is_refused_when_it_arrives() {
    let (proxy, url, direct) = proxied("");
    let (store, other) = (Store::open(&url).await, Arc::new(Store::open(&direct).await));
    // It is lost once; before it is sent again, another server likes.
    let (lost, tell) = (Arc::new(Mutex::new(Vec::new())), tokio::sync::mpsc::unbounded_channel::<()>());
    let (keep, (told, mut hear)) = (lost.clone(), tell);
    let (go_on, going) = std::sync::mpsc::channel::<()>();
    let going = Mutex::new(going);
    proxy.cut_when(Cut::Before, move |direction, bytes| {
        let mut kept = keep.lock().unwrap();
        let found = kept.is_empty() && is_commit(direction, bytes);
        if found {
            kept.extend_from_slice(bytes);
            told.send(()).unwrap();
            going.lock().unwrap().recv().unwrap();
        }
        found
    });
    let calling = tokio::spawn({
        let runner = store.runner.clone();
        let call = tally_core::command::Call::system(toggle("post:1", "alice"));
        async move { runner.apply(call).await }
    });
    hear.recv().await.unwrap();
    other.like("post:1", "alice").await.unwrap();
    go_on.send(()).unwrap();
    let answer = crate::support::edge(calling.await.unwrap().unwrap().reply.unwrap());
    assert!(!answer.active, "it was decided again");
    proxy.pass();
    let lost = lost.lock().unwrap().clone();
    let late = send_late(&direct, &lost);
    assert!(late.contains("cancelled"), "{late}");
    assert_eq!(other.count("post:1").await.unwrap(), 0, "the toggle was done once");
    assert_eq!(other.assert_sound().await, 0);
}
