//! What is due is shared by servers: all of it is done, nothing twice, whoever comes, goes, or acts too late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tally_core::due::settling;
use tally_core::reply::{Done, Reply};
use tally_core::rows::{Key, LimitKey, Partitions, Replay, Row, RowKind, Used, UsedState};
use tally_core::time::Timestamp;
use tally_core::view::Wants;
use tally_engine::{Engine, Range};

use super::servers::{Clocks, Servers};
use super::worker::{Off, Worker, shared, until};
use crate::EngineFactory;
use crate::driver::write;
use crate::sample::replay_key;
use crate::stand::Stand;

/// Rows of each kind; enough for every partition.
const ROWS: usize = 500;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// What the store takes the time to be.
async fn store_time<E: Engine>(engine: &E) -> i64 {
    let now = engine.load(&Wants::default()).await.expect("a load works").now;
    now.expect("a store that is shared tells the time").time().0.cast_signed()
}

fn replay(at: i64) -> Row {
    let expires_at = Timestamp(at.cast_unsigned());
    Row::Replay(Replay { fields: Arc::default(), answer: "null".into(), expires_at })
}

fn limit(at: i64) -> Row {
    let at = at.cast_unsigned();
    // Nobody declares it, so that it goes when it is looked at.
    Row::Limit(Used { state: UsedState::Bucket { full_at: at }, look_at: Timestamp(at) })
}

/// Puts rows of two kinds in every partition, due so long after now.
async fn put<E: Engine>(engine: &E, round: &str, after_ms: i64) -> BTreeSet<Key> {
    let at = store_time(engine).await + after_ms;
    let mut rows = BTreeMap::new();
    for n in 0..ROWS {
        rows.insert(Key::Replay(replay_key("app", &format!("{round}{n}"))), replay(at));
        let limit_key = LimitKey { name: "gone".into(), key: format!("{round}:{n}") };
        rows.insert(Key::Limit(limit_key), limit(at));
    }
    for kind in [RowKind::Replay, RowKind::Limit] {
        let found: Partitions = rows.keys().filter(|key| key.kind() == kind).map(Key::partition).collect();
        assert_eq!(found, Partitions::ALL, "some in every partition");
    }
    write(engine, rows.iter().map(|(key, row)| (key.clone(), Some(row.clone()))), []).await;
    rows.into_keys().collect()
}

/// The rows that are still there.
async fn left<E: Engine>(engine: &E) -> BTreeSet<Key> {
    let mut left = BTreeSet::new();
    for kind in [RowKind::Replay, RowKind::Limit] {
        let page = engine.scan(&Range::due(kind, Timestamp(u64::MAX)), 4 * ROWS).await.expect("a scan works");
        left.extend(page.items.into_iter().map(|(key, _)| key));
    }
    left
}

/// Waits until these are gone.
async fn done<E: Engine>(engine: &E, keys: &BTreeSet<Key>) {
    until("what is due is done", async || left(engine).await.is_disjoint(keys)).await;
}

/// Each of the rows was taken away once, by a server that had its partition.
async fn assert_once<E: Engine>(workers: &[Worker<E>], keys: &BTreeSet<Key>) {
    // A row is gone from the store a moment before the server that took it has written that down.
    let noted = |worker: &Worker<E>| worker.engine.gone().iter().filter(|key| keys.contains(key)).count();
    until("it is written down", async || workers.iter().map(noted).sum::<usize>() >= keys.len()).await;
    let mut by = BTreeMap::new();
    for (number, worker) in workers.iter().enumerate() {
        let own: Vec<Key> = worker.engine.gone().into_iter().filter(|key| keys.contains(key)).collect();
        assert!(!own.is_empty(), "server {number} has done nothing");
        for key in own {
            assert!(worker.held().contains(key.partition()), "{key:?} is another server's");
            assert_eq!(by.insert(key.clone(), number), None, "{key:?} was done twice");
        }
    }
    assert_eq!(by.len(), keys.len(), "all of it is done");
}

pub(super) async fn what_is_due_is_done_once_by_three_servers<F: EngineFactory>(stand: Stand<F>) {
    if !stand.servers() {
        // One server has all of it to itself.
        return;
    }
    let stand = Arc::new(stand);
    let mut workers = Vec::new();
    // Whoever joins gets its share.
    for _ in 0..3 {
        workers.push(Worker::start(&stand, Off(0)).await);
        shared(&workers).await;
    }
    let engine = stand.open().await;
    let keys = put(&*engine, "a", -MINUTE_MS).await;
    done(&*engine, &keys).await;
    assert_once(&workers, &keys).await;
    // One leaves in good order, and the others go on with all of it.
    workers.remove(1).leave().await;
    shared(&workers).await;
    let keys = put(&*engine, "b", -MINUTE_MS).await;
    done(&*engine, &keys).await;
    assert_once(&workers, &keys).await;
    for worker in workers {
        worker.leave().await;
    }
}

pub(super) async fn what_a_dead_server_had_is_taken_over<F: EngineFactory>(stand: Stand<F>) {
    if !stand.servers() {
        return;
    }
    let stand = Arc::new(stand);
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(Worker::start(&stand, Off(0)).await);
    }
    shared(&workers).await;
    let engine = stand.open().await;
    workers.remove(0).die();
    let keys = put(&*engine, "a", -MINUTE_MS).await;
    done(&*engine, &keys).await;
    shared(&workers).await;
    for worker in workers {
        worker.leave().await;
    }
}

pub(super) async fn what_is_due_goes_by_the_time_of_the_store<F: EngineFactory>(stand: Stand<F>) {
    if !stand.servers() {
        return;
    }
    let stand = Arc::new(stand);
    let mut workers = Vec::new();
    for off in [Off(HOUR_MS), Off(-HOUR_MS)] {
        workers.push(Worker::start(&stand, off).await);
    }
    shared(&workers).await;
    let engine = stand.open().await;
    let later = put(&*engine, "later", HOUR_MS / 2).await;
    // Both have looked at the later ones as often as at these.
    for round in ["a", "b", "c"] {
        let keys = put(&*engine, round, -MINUTE_MS).await;
        done(&*engine, &keys).await;
        assert_once(&workers, &keys).await;
    }
    assert_eq!(left(&*engine).await, later, "an hour is not over because a server says so");
    for worker in workers {
        worker.leave().await;
    }
}

/// A server stands still between its look and its command. Meanwhile another one does the work, and the row is made anew.
pub(super) async fn a_server_that_lost_its_lease_acts_late_and_changes_nothing<F: EngineFactory>(stand: Stand<F>) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let done = |changed| Reply::Done(Done { changed });
    for (round, (key, row)) in [
        (Key::Replay(replay_key("app", "late")), replay as fn(i64) -> Row),
        (Key::Limit(LimitKey { name: "gone".into(), key: "late".into() }), limit),
    ]
    .into_iter()
    .enumerate()
    {
        let settling = settling(key.kind()).expect("it is due some time");
        let command = || (settling.command)(vec![key.clone()]);
        let engine = servers.engine(0);
        write(&**engine, [(key.clone(), Some(row(1_000)))], []).await;
        assert_eq!(servers.run(round, command()).await, done(true));
        assert_eq!(servers.run(round + 1, command()).await, done(false), "it is done already");
        let far = Some(row(i64::MAX >> 20));
        write(&**engine, [(key.clone(), far.clone())], []).await;
        assert_eq!(servers.run(round + 1, command()).await, done(false), "it is not due any more");
        let loaded = engine.load(&Wants::rows(vec![key.clone()])).await.expect("a load works");
        assert_eq!(loaded.rows, [far], "what was made meanwhile is left alone");
        write(&**engine, [(key, None)], []).await;
    }
    servers.stop(&crate::universe::Universe::default()).await;
}
