//! Servers that die in the middle of a commit over several slots: others end it, one way or the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tally_core::command::{Batch, Call, Command};
use tally_core::rows::{ListKey, Side};
use tally_engine::{Engine, Failure, Range, Runner, RunnerOptions, SystemClock};
use tally_testing::{Cluster, ClusterOptions};
use tokio::task::JoinSet;

use crate::support::{Store, blocking, catalog, engine, relate, shared_cluster, toggle, until};

/// What its batches like, all or none: in slots and lanes of their own.
const BOOKS: [&str; 4] = ["book:one", "book:number-2", "novel:three", "poem:4:of:4"];

/// A server on a thread of its own, which can stand still or die at any moment with everything that it was about.
struct Server {
    runtime: Option<tokio::runtime::Runtime>,
    answered: Arc<AtomicUsize>,
}

impl Server {
    /// Batches over many slots, one after another, for as long as it lives.
    fn on(url: &str, first: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (url, answered) = (url.to_owned(), Arc::new(AtomicUsize::new(0)));
        let told = answered.clone();
        runtime.spawn(async move {
            let options = RunnerOptions::default();
            let engine = engine(&url);
            let started = Runner::start(engine, catalog(), SystemClock, options, Arc::new(|_| {})).await;
            let runner = started.unwrap().0;
            for turn in first.. {
                let commands = BOOKS.map(|book| toggle(book, &format!("doomed-{}", turn % 5))).to_vec();
                drop(runner.apply(Call::system(Command::from(Batch { atomic: true, commands }))).await);
                told.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { runtime: Some(runtime), answered }
    }

    /// Waits until it is somewhere in its work: where, differs from number to number.
    async fn until_in_the_middle(&self, number: usize) {
        let goal = self.answered.load(Ordering::SeqCst) + 1;
        until("it works", async || (self.answered.load(Ordering::SeqCst) >= goal).then_some(())).await;
        for _ in 0..number * 97 % 1_000 {
            tokio::task::yield_now().await;
        }
    }

    /// Makes it stand still until what is given back is dropped.
    async fn freeze(&self) -> std::sync::mpsc::Sender<()> {
        let (go_on, going) = std::sync::mpsc::channel::<()>();
        let (stand, stands) = tokio::sync::oneshot::channel();
        self.runtime.as_ref().unwrap().spawn(async move {
            stand.send(()).unwrap();
            assert!(going.recv().is_err());
        });
        stands.await.unwrap();
        go_on
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Every task stops where it waits, and is never heard of again: no thread of it sends anything after this.
        let runtime = self.runtime.take().unwrap();
        blocking(|| runtime.shutdown_timeout(Duration::from_secs(30)));
    }
}

/// Slots in which a commit is under way, on all masters.
fn open_slots(cluster: &Cluster) -> usize {
    let count = |node: usize| {
        let keys = cluster.node(node).ask(&["KEYS", "tally:w:*"]).unwrap();
        keys.lines().filter(|key| !key.is_empty()).count()
    };
    (0..3).map(count).sum()
}

/// Nothing is open, both sides agree, and of every batch there is all or nothing.
async fn assert_whole(cluster: &Cluster, store: &Store) {
    // What a dead server has sent may still be on its way when others have looked for what it left.
    let ended = async || {
        store.settle().await;
        (blocking(|| open_slots(cluster)) == 0).then_some(())
    };
    until("nothing is open anywhere", ended).await;
    store.assert_sound().await;
    let mut fans = Vec::new();
    for book in BOOKS {
        let list = ListKey { side: Side::Object, id: book.into(), relation: None, hidden: false };
        let page = store.engine.scan(&Range::List { list, after: None }, 100).await.unwrap();
        let mut who: Vec<String> = page.items.iter().map(|(key, _)| format!("{key:?}").replace(book, "")).collect();
        who.sort();
        fans.push(who);
    }
    assert!(fans.windows(2).all(|two| two[0] == two[1]), "{fans:?}");
}

fn patient() -> Cluster {
    Cluster::start(ClusterOptions { node_timeout_ms: 30_000, ..ClusterOptions::default() }).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_dead_servers_left_behind_is_ended_by_those_that_live() {
    let cluster = blocking(patient);
    let store = Store::open(&cluster.url()).await;
    let mut left = 0;
    for life in 0..30 {
        let server = Server::on(&cluster.url(), life);
        server.until_in_the_middle(life).await;
        drop(server);
        left += usize::from(blocking(|| open_slots(&cluster)) > 0);
    }
    println!("{left} of 30 left something open");
    assert!(left > 0, "nobody died in the middle of anything");
    assert_whole(&cluster, &store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stood_still_in_the_middle_of_a_commit_is_told_what_became_of_it() {
    let cluster = blocking(patient);
    let store = Store::open(&cluster.url()).await;
    let server = Server::on(&cluster.url(), 0);
    let mut left = 0;
    for number in 0..300 {
        server.until_in_the_middle(number).await;
        let frozen = server.freeze().await;
        if blocking(|| open_slots(&cluster)) > 0 {
            // Meanwhile another ends what it left, and it may have been just about to commit.
            store.settle().await;
            left += 1;
        }
        drop(frozen);
        if left == 8 {
            break;
        }
    }
    assert_eq!(left, 8, "it hardly ever stood still in the middle of anything");
    server.until_in_the_middle(0).await;
    drop(server);
    assert_whole(&cluster, &store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_behind_is_ended_where_there_is_no_memory_left() {
    let cluster = blocking(patient);
    let store = Store::open(&cluster.url()).await;
    let server = Server::on(&cluster.url(), 0);
    let memory = |much: &str| {
        (0..3).for_each(|node| drop(cluster.node(node).ask(&["CONFIG", "SET", "maxmemory", much]).unwrap()));
    };
    let mut left = 0;
    for number in 0..300 {
        server.until_in_the_middle(number).await;
        let frozen = server.freeze().await;
        if blocking(|| open_slots(&cluster)) > 0 {
            blocking(|| memory("1mb"));
            store.settle().await;
            for book in BOOKS {
                store.count(book).await.unwrap();
            }
            blocking(|| memory("0"));
            left += 1;
        }
        drop(frozen);
        if left == 6 {
            break;
        }
    }
    assert_eq!(left, 6, "it hardly ever stood still in the middle of anything");
    drop(server);
    assert_whole(&cluster, &store).await;
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
    for round in 0..20 {
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
    assert_eq!(stores[0].assert_sound().await, 60);
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
