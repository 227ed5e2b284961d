//! Hot totals are spread over rows and folded up while everybody adds to them: no unit is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use tally_engine::SystemClock;
use tally_postgres::{Options, Postgres};
use tokio::task::JoinSet;

use crate::support::{Outsider, Store, shared, total, unique, until};

const POST: &str = "post:hot";

/// Likes that go on until they are told to end, each by somebody else.
struct Fans {
    /// The counts that each was told.
    tasks: JoinSet<Vec<i64>>,
    ended: Arc<AtomicBool>,
    begun: Arc<AtomicI64>,
    answered: Arc<AtomicI64>,
}

impl Fans {
    fn of(stores: &[Store], each: usize) -> Self {
        let (begun, answered) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
        let ended = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for (number, store) in stores.iter().enumerate().cycle().take(each * stores.len()) {
            let runner = store.runner.clone();
            let (ended, begun, answered) = (ended.clone(), begun.clone(), answered.clone());
            tasks.spawn(async move {
                let mut told = Vec::new();
                while !ended.load(Ordering::SeqCst) {
                    let before = answered.load(Ordering::SeqCst);
                    let who = format!("fan-{number}-{}", begun.fetch_add(1, Ordering::SeqCst));
                    let call = tally_core::command::Call::system(crate::support::relate("like", POST, &who));
                    let count = crate::support::edge(runner.apply(call).await.unwrap().reply.unwrap()).count;
                    answered.fetch_add(1, Ordering::SeqCst);
                    let most = begun.load(Ordering::SeqCst);
                    assert!(before < count && count <= most, "{before} before, {count} told, {most} at most");
                    told.push(count);
                }
                told
            });
        }
        Self { tasks, ended, begun, answered }
    }

    /// While so many more likes are answered, every load sees all that had been answered before it.
    async fn until_answered(&self, stores: &[Store], more: i64) {
        let goal = self.answered.load(Ordering::SeqCst) + more;
        for look in 0.. {
            let before = self.answered.load(Ordering::SeqCst);
            let count = stores[look % stores.len()].count(POST).await.unwrap();
            let most = self.begun.load(Ordering::SeqCst);
            assert!(before <= count && count <= most, "{before} before, {count} loaded, {most} at most");
            if before >= goal {
                return;
            }
        }
    }

    async fn end(self, store: &Store) -> i64 {
        self.ended.store(true, Ordering::SeqCst);
        let mut told: Vec<i64> = self.tasks.join_all().await.into_iter().flatten().collect();
        told.sort_unstable();
        assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "a count was told twice: {told:?}");
        let answered = self.answered.load(Ordering::SeqCst);
        assert_eq!(store.count(POST).await.unwrap(), answered);
        assert_eq!(store.assert_sound().await, answered.unsigned_abs());
        answered
    }
}

async fn three(url: &str) -> Vec<Store> {
    vec![Store::open(url).await, Store::open(url).await, Store::open(url).await]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_unit_is_lost_while_a_total_is_spread_and_folded_up() {
    let url = shared("");
    let stores = three(&url).await;
    let outside = Outsider::of(&url).await;
    let fans = Fans::of(&stores, 4);
    fans.until_answered(&stores, 30).await;
    for round in 0..3 {
        for (number, shards) in [10, 100, 10, 1].into_iter().enumerate() {
            let engine = &stores[(number + round) % stores.len()].engine;
            until("it is resized", async || engine.resize(&total(POST), shards).await.ok()).await;
            let rows = outside.number(&format!("SELECT count(*) FROM object_total WHERE object = '{POST}'")).await;
            assert_eq!(rows, i64::from(shards));
            stores[0].assert_sound().await;
            fans.until_answered(&stores, 60).await;
        }
    }
    fans.end(&stores[1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_believes_in_shards_which_are_gone_is_decided_again() {
    let url = shared("");
    let (believer, folder) = (Store::open(&url).await, Store::open(&url).await);
    believer.like(POST, "first").await.unwrap();
    believer.engine.resize(&total(POST), 10).await.unwrap();
    for n in 0..20 {
        assert_eq!(believer.like(POST, &format!("early-{n}")).await.unwrap().count, n + 2);
    }
    folder.engine.resize(&total(POST), 1).await.unwrap();
    assert_eq!((believer.engine.spread_totals(), folder.engine.spread_totals()), (1, 0));
    for n in 0..20 {
        assert_eq!(believer.like(POST, &format!("late-{n}")).await.unwrap().count, n + 22);
    }
    assert_eq!(believer.engine.spread_totals(), 0, "it has learnt");
    assert_eq!(believer.assert_sound().await, 41);
}

/// Runs a like that waits for the first shard while somebody else does this to the shards.
async fn like_during(url: &str, application: &str, store: &Arc<Store>, sql: &str) -> i64 {
    let (outside, watching) = (Outsider::of(url).await, Outsider::of(url).await);
    outside.run(&format!("BEGIN; SELECT FROM object_total WHERE shard = 0 FOR UPDATE; {sql}")).await;
    let calling = tokio::spawn({
        let store = store.clone();
        async move { store.like(POST, &unique()).await.unwrap().count }
    });
    watching.until_waiting(application, 1).await;
    outside.run("COMMIT").await;
    calling.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_like_that_waited_while_its_total_was_resized_tells_the_right_count() {
    let application = unique();
    let url = shared(&format!("&application_name={application}"));
    let store = Arc::new(Store::open(&url).await);
    store.like(POST, "first").await.unwrap();
    let grow = "INSERT INTO object_total SELECT object, relation, kind, s, 1, 0
                    FROM object_total, generate_series(1, 9) AS s WHERE shard = 0;
                UPDATE object_total SET shards = 10 WHERE shard = 0";
    assert_eq!(like_during(&url, &application, &store, grow).await, 2);
    // A unit in the last shard, as if another server had put it there.
    let move_one = "UPDATE object_total SET n = n - 1 WHERE shard = 0; UPDATE object_total SET n = 1 WHERE shard = 9";
    Outsider::of(&url).await.run(move_one).await;
    let fold = |to: i64| {
        format!(
            "WITH gone AS (DELETE FROM object_total WHERE shard >= {to} RETURNING n)
             UPDATE object_total SET n = n + (SELECT sum(n) FROM gone), shards = {to} WHERE shard = 0"
        )
    };
    // A new runner, which does not know that there are shards and so adds to the first.
    for (shards, count) in [(5, 3), (1, 4)] {
        let store = Arc::new(Store::open(&url).await);
        assert_eq!(like_during(&url, &application, &store, &fold(shards)).await, count, "down to {shards}");
    }
    assert_eq!(store.assert_sound().await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_total_that_three_servers_add_to_is_spread_by_itself_and_folded_up_when_quiet() {
    let url = shared("");
    let mut stores = Vec::new();
    for _ in 0..3 {
        let mut options = Options::parse(&url).unwrap();
        options.hot_window = Duration::from_millis(50);
        stores.push(Store::on(Arc::new(Postgres::new(options).unwrap()), SystemClock).await);
    }
    let outside = Outsider::of(&url).await;
    let fans = Fans::of(&stores, 16);
    let sql = format!("SELECT max(shards) FROM object_total WHERE object = '{POST}' HAVING count(*) > 0");
    let rows = async || outside.number(&format!("SELECT coalesce(({sql}), 0)")).await;
    until("it is spread", async || (rows().await > 1).then_some(())).await;
    let known = || stores.iter().any(|store| store.engine.spread_totals() == 1);
    until("the server that spread it knows", async || known().then_some(())).await;
    fans.until_answered(&stores, 100).await;
    fans.end(&stores[0]).await;
    until("it is folded up", async || (rows().await == 1).then_some(())).await;
    let shards = outside.number(&format!("SELECT count(*) FROM object_total WHERE object = '{POST}'")).await;
    assert_eq!(shards, 1);
    stores[0].assert_sound().await;
}
