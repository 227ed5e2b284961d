//! Commits whose answers are lost: told as they were, done once, and never done afterwards.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tally_core::rows::Changes;
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_engine::{
    Audited, CommitError, Committed, Engine, Finding, Follower, Loaded, Mark, Mend, Nature, Page, Range, Seen,
    StoreError,
};
use tally_redis::Redis;
use tally_testing::{Cut, Direction, Proxy};
use tokio::sync::oneshot::{Receiver, Sender, channel};

use crate::network::{holds, once, proxied};
use crate::support::{Store, engine, toggle, unavailable, until};

/// An engine that stops once, between what is loaded and what is committed on it.
pub(crate) struct Stopping {
    inner: Arc<Redis>,
    stop: tokio::sync::Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

/// Where it stops: says when it is there, and lets it go on.
pub(crate) struct Stop {
    pub(crate) reached: Receiver<()>,
    pub(crate) go_on: Sender<()>,
}

impl Stopping {
    pub(crate) async fn on(url: &str) -> (Arc<Store<Self>>, impl AsyncFn() -> Stop) {
        let engine = Arc::new(Self { inner: engine(url), stop: tokio::sync::Mutex::new(None) });
        let store = Arc::new(Store::on(engine.clone()).await);
        let arm = async move || {
            let ((reach, reached), (go_on, going)) = (channel(), channel());
            *engine.stop.lock().await = Some((reach, going));
            Stop { reached, go_on }
        };
        (store, arm)
    }
}

impl Engine for Stopping {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.inner.prepare().await
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        self.inner.load(wants).await
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        if let Some((reach, going)) = self.stop.lock().await.take() {
            reach.send(()).unwrap();
            going.await.unwrap();
        }
        self.inner.commit(seen, changes).await
    }

    async fn settle(&self, mark: Mark) -> Result<(), StoreError> {
        self.inner.settle(mark).await
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        self.inner.scan(range, limit).await
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        self.inner.audit(tell).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.inner.ping().await
    }

    fn nature(&self) -> Nature {
        self.inner.nature()
    }

    fn follower(&self) -> Option<&Follower> {
        self.inner.follower()
    }

    async fn mend(&self, what: &Mend) -> Result<bool, StoreError> {
        self.inner.mend(what).await
    }
}

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
async fn a_connection_that_is_cut_during_a_commit_costs_no_answer_and_does_nothing_twice() {
    let (proxy, url, _) = proxied("");
    let store = Store::open(&url).await;
    let mut count = 0;
    for cut in [Cut::Before, Cut::After] {
        for side in [Direction::Request, Direction::Answer] {
            let hit = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let cutting = {
                let hit = hit.clone();
                once(move |direction, bytes| {
                    let found = match side {
                        Direction::Request => is_commit(direction, bytes),
                        Direction::Answer => direction == side && holds(bytes, "done"),
                    };
                    hit.fetch_or(found, std::sync::atomic::Ordering::SeqCst);
                    found
                })
            };
            proxy.cut_when(cut, cutting);
            store.add("post:1").await.unwrap();
            assert!(hit.load(std::sync::atomic::Ordering::SeqCst), "{cut:?} {side:?}: nothing was cut");
            proxy.pass();
            count += 1;
            let there = until("it answers", async || store.count("post:1").await.ok()).await;
            assert_eq!(there, count, "{cut:?} {side:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_was_swallowed_is_answered_and_done_once() {
    let (proxy, url, direct) = proxied("");
    let (store, arm) = Stopping::on(&url).await;
    let outside = Store::open(&direct).await;
    store.add("post:1").await.unwrap();
    let stop = arm().await;
    let calling = tokio::spawn({
        let store = store.clone();
        async move { store.add("post:1").await }
    });
    stop.reached.await.unwrap();
    proxy.drop_answers();
    stop.go_on.send(()).unwrap();
    until("it is there", async || (outside.count("post:1").await.unwrap() >= 2).then_some(())).await;
    proxy.pass();
    calling.await.unwrap().unwrap();
    assert_eq!(outside.count("post:1").await.unwrap(), 2);
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
