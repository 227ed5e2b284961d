//! Servers that die in the middle of a commit over several slots: others end it, one way or the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tally_core::command::{Call, Command};
use tally_core::rows::{ListKey, Side};
use tally_engine::{Engine, Failure, Range, Runner, RunnerOptions, SystemClock};
use tally_testing::{Cluster, ClusterOptions};
use tokio::task::JoinSet;

use crate::ledger::Hands;
use crate::support::{Store, blocking, catalog, engine, relate, shared_cluster, toggle, until};

/// A server with a runtime of its own, which can be ended at any moment with everything that it was about.
struct Doomed(Option<tokio::runtime::Runtime>);

impl Doomed {
    /// Batches over many slots, one after another, until it dies.
    fn on(url: &str, life: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let url = url.to_owned();
        runtime.spawn(async move {
            let options = RunnerOptions::default();
            let engine = engine(&url);
            let started = Runner::start(engine, catalog(), SystemClock, options, Arc::new(|_| {})).await;
            let runner = started.unwrap().0;
            for turn in 0.. {
                let commands =
                    (0..4).map(|post| toggle(&format!("post:{post}"), &format!("doomed-{}", (life + turn) % 5)));
                let batch = Command::Batch { atomic: true, commands: commands.collect() };
                drop(runner.apply(Call::system(batch)).await);
            }
        });
        Self(Some(runtime))
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        // Every task stops where it waits, and is never heard of again.
        self.0.take().unwrap().shutdown_background();
    }
}

/// Entries of commits that are under way, on all masters.
fn open_entries(cluster: &Cluster, prefix: &str) -> usize {
    let count = |node: usize| {
        let keys = cluster.node(node).ask(&["KEYS", &format!("{prefix}:w:*")]).unwrap();
        keys.lines().filter(|key| !key.is_empty()).count()
    };
    (0..3).map(count).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_dead_servers_left_behind_is_ended_by_those_that_live() {
    let options = ClusterOptions { node_timeout_ms: 30_000, ..ClusterOptions::default() };
    let cluster = blocking(|| Cluster::start(options)).unwrap();
    let store = Store::open(&cluster.url()).await;
    let hands = Hands::on(&store);
    let mut left = 0;
    for life in 0..40 {
        let doomed = Doomed::on(&cluster.url(), life);
        // It dies somewhere in its work; where, differs from life to life.
        hands.until_answered(10 + life % 7).await;
        drop(doomed);
        left += usize::from(open_entries(&cluster, "tally") > 0);
    }
    println!("{left} of 40 lives left something open");
    hands.until_answered(50).await;
    hands.check(&store).await;
    assert_eq!(open_entries(&cluster, "tally"), 0);
    // All or none of a batch: four posts, each with the same fans.
    let mut fans = Vec::new();
    for post in 0..4 {
        let list = ListKey { side: Side::Object, id: format!("post:{post}"), relation: None, hidden: false };
        let page = store.engine.scan(&Range::List { list, after: None }, 100).await.unwrap();
        let of = |key: &tally_core::rows::Key| match key {
            tally_core::rows::Key::Edge(edge) => edge.subject.as_str().to_owned(),
            other => panic!("{other:?}"),
        };
        let mut who: Vec<String> =
            page.items.iter().map(|(key, _)| of(key)).filter(|who| who.starts_with("doomed")).collect();
        who.sort();
        fans.push(who);
    }
    assert!(fans.windows(2).all(|two| two[0] == two[1]), "{fans:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_while_servers_write_at_once_and_another_ends_whatever_it_meets() {
    let url = shared_cluster("&timeout_ms=10000");
    let stores = [Arc::new(Store::open(&url).await), Arc::new(Store::open(&url).await)];
    let ended = Arc::new(AtomicBool::new(false));
    let resolving = tokio::spawn({
        let (engine, ended) = (engine(&url), ended.clone());
        async move {
            while !ended.load(Ordering::SeqCst) {
                engine.drain().await.unwrap();
            }
        }
    });
    for round in 0..5 {
        let mut calling = JoinSet::new();
        for number in 0..12 {
            let store = stores[number % 2].clone();
            let (book, who) = (format!("book:{round}:{number}"), format!("reader-{round}"));
            calling.spawn(async move {
                let call = Call::system(relate("shelf", &book, &who));
                loop {
                    match store.runner.apply(call.clone()).await {
                        Ok(decided) => return decided.reply.is_ok(),
                        // Given up after too many conflicts: nothing was done.
                        Err(Failure::Overloaded) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
        let taken = calling.join_all().await.into_iter().filter(|taken| *taken).count();
        assert_eq!(taken, 3, "round {round}");
    }
    ended.store(true, Ordering::SeqCst);
    resolving.await.unwrap();
    assert_eq!(stores[0].assert_sound().await, 15);
}

/// How long the far side of a like is behind the near one: told, not asserted.
#[tokio::test(flavor = "multi_thread")]
async fn the_far_side_of_a_like_follows() {
    let url = shared_cluster("");
    let (store, looking) = (Arc::new(Store::open(&url).await), Store::open(&url).await);
    let mut lags = Vec::new();
    for number in 0..50 {
        let who = format!("fan-{number}");
        let liking = tokio::spawn({
            let (store, who) = (store.clone(), who.clone());
            async move { store.like("post:1", &who).await.unwrap() }
        });
        until("it counts", async || (looking.count("post:1").await.unwrap() > number).then_some(())).await;
        let seen = Instant::now();
        let list = ListKey { side: Side::Subject, id: who, relation: None, hidden: false };
        let range = Range::List { list, after: None };
        until("it is in her list", async || {
            (looking.engine.scan(&range, 10).await.unwrap().items.len() == 1).then_some(())
        })
        .await;
        lags.push(seen.elapsed());
        assert!(liking.await.unwrap().changed);
    }
    lags.sort_unstable();
    println!("behind by {:?} at most, {:?} in the middle", lags.last().unwrap_or(&Duration::ZERO), lags[25]);
    assert_eq!(looking.assert_sound().await, 50);
    Arc::into_inner(store).unwrap().stop().await;
}
