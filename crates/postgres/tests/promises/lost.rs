//! Commits whose answers are lost, as they meet their look-up: before it, during it, and after it.

use std::process::Command;
use std::sync::Arc;

use tally_conformance::network::Stopping;
use tally_engine::SystemClock;
use tally_testing::{Cut, Direction, holds, once};

use crate::network::proxied;
use crate::support::{Outsider, Store, engine, unavailable, unique, until, with_schema};

/// A process of the database that stands still, until this goes.
struct Frozen(i64);

impl Frozen {
    fn new(pid: i64) -> Self {
        signal("STOP", pid);
        Self(pid)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("CONT", self.0);
    }
}

fn signal(name: &str, pid: i64) {
    let done = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().unwrap();
    assert!(done.success() || std::thread::panicking());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_arrives_after_it_was_looked_up_is_refused() {
    let postgres = tally_testing::Postgres::start(Default::default()).unwrap();
    let late = unique();
    let url = with_schema(&postgres.url(), &format!("&timeout_ms=500&application_name={late}"));
    let stopping = Stopping::new(engine(&url));
    let store = Arc::new(Store::on(stopping.clone(), SystemClock).await);
    let outside = Outsider::of(&url).await;
    store.like("post:1", "before").await.unwrap();
    let stop = stopping.arm().await;
    let calling = tokio::spawn({
        let store = store.clone();
        async move { store.like("post:1", "alice").await }
    });
    stop.reached.await.unwrap();
    let backends = format!("FROM pg_stat_activity WHERE application_name = '{late}'");
    assert_eq!(outside.number(&format!("SELECT count(*) {backends}")).await, 1);
    let pid = outside.number(&format!("SELECT pid {backends}")).await;
    let frozen = Frozen::new(pid);
    stop.go_on.send(()).unwrap();

    let why = unavailable(calling.await.unwrap());
    assert!(why.contains("did not answer within 500 ms"), "{why}");
    let edge = store.like("post:1", "bob").await.unwrap();
    assert_eq!((edge.changed, edge.count), (true, 2), "others go on meanwhile, and alice is not counted");

    drop(frozen);
    let left = format!("SELECT count(*) {backends} AND pid = {pid}");
    until("the late one is over", async || (outside.number(&left).await == 0).then_some(())).await;
    assert_eq!(store.assert_sound().await, 2, "what was said not to be done is not done afterwards");
    assert_eq!(store.like("post:1", "alice").await.unwrap().count, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_still_open_when_it_is_looked_up_is_waited_for() {
    let application = unique();
    let (proxy, url, direct) = proxied(&format!("&application_name={application}"));
    let store = Arc::new(Store::open(&url).await);
    let (outside, watching) = (Outsider::of(&direct).await, Outsider::of(&direct).await);
    store.like("post:1", "before").await.unwrap();
    let commits = watching.commits().await;
    outside.run("BEGIN; SELECT FROM object_total FOR UPDATE").await;
    proxy.cut_when(Cut::After, once(|side, bytes| side == Direction::Request && holds(bytes, "COMMIT")));
    let calling = tokio::spawn({
        let store = store.clone();
        async move { store.like("post:1", "alice").await }
    });
    // The commit waits for the total, and its lookup for the commit.
    watching.until_waiting(&application, 2).await;
    outside.run("ROLLBACK").await;
    let edge = calling.await.unwrap().unwrap();
    assert_eq!((edge.changed, edge.active, edge.count), (true, true, 2));
    assert_eq!(watching.commits().await, commits + 1, "it was not done again");
    assert_eq!(store.assert_sound().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_was_cleaned_away_is_replaced() {
    let url = crate::support::shared("");
    let store = Store::open(&url).await;
    let outside = Outsider::of(&url).await;
    store.like("post:1", "before").await.unwrap();
    outside.run("DELETE FROM lane").await;
    assert_eq!(store.like("post:1", "alice").await.unwrap().count, 2);
    assert_eq!(store.assert_sound().await, 2);
}
