//! What is due, by partition: what a range finds is what a naive look at all rows finds.

use std::collections::BTreeMap;
use std::sync::Arc;

use tally_core::rows::{
    DUE_PARTITIONS, Job, JobId, JobKind, Key, LimitKey, Partitions, Replay, Row, RowKind, Used, UsedState, Work,
};
use tally_core::time::{Stamp, Timestamp};
use tally_engine::{Engine, Range};

use crate::EngineFactory;
use crate::driver::write;
use crate::random::Random;
use crate::sample::replay_key;
use crate::stand::Stand;

/// So many of each kind: some in every partition.
const ROWS: u64 = 400;
/// Ids that a store may have to take care with, each the home of a limit.
const ODD: [&str; 9] = ["", "}", "}a", "%", "%}", "a}b", "{", "{}", "a{b}"];

type Rows = BTreeMap<Key, Row>;

fn replay(at: u64) -> Row {
    Row::Replay(Replay { fields: Arc::default(), answer: "null".into(), expires_at: Timestamp(at) })
}

fn limit(at: u64) -> Row {
    Row::Limit(Used { state: UsedState::Bucket { full_at: at }, look_at: Timestamp(at) })
}

fn job(ended: Option<u64>) -> Row {
    let (before, created_at, finished_at) = (Stamp(9), Timestamp(1), ended.map(Timestamp));
    Row::Job(Job { work: Work::Ended { work: JobKind::Forget }, before, edges: 1, created_at, finished_at })
}

fn limit_key(key: &str) -> Key {
    Key::Limit(LimitKey { name: "posting".into(), key: key.into() })
}

/// Rows of every kind that is ever due, at few times, so that many are due at the same.
fn rows(random: &mut Random) -> Rows {
    let mut at = || 1 + random.next() % 50;
    let mut rows = Rows::new();
    for n in 0..ROWS {
        rows.insert(Key::Replay(replay_key("app", &format!("r{n}"))), replay(at()));
        rows.insert(limit_key(&format!("user:{n}")), limit(at()));
        if n % 20 == 0 {
            rows.insert(Key::Job(JobId(n + 1)), job((n % 40 == 0).then(&mut at)));
        }
    }
    rows.extend(ODD.map(|id| (limit_key(id), limit(at()))));
    rows
}

fn naive(rows: &Rows, kind: RowKind, partitions: Partitions, from: u64, before: u64) -> Vec<(Key, Row)> {
    let is_due = |row: &Row| row.due().is_some_and(|at| at.0 >= from && at.0 < before);
    let found = rows.iter().filter(|(key, row)| key.kind() == kind && is_due(row));
    let mut found: Vec<(Key, Row)> = found
        .filter(|(key, _)| partitions.contains(key.partition()))
        .map(|(key, row)| (key.clone(), row.clone()))
        .collect();
    found.sort_by_key(|(key, row)| (row.due(), key.clone()));
    found
}

async fn same<E: Engine>(engine: &E, rows: &Rows, random: &mut Random) {
    const KINDS: [RowKind; 3] = [RowKind::Replay, RowKind::Limit, RowKind::Job];
    let mut sets = vec![Partitions::ALL, Partitions::NONE];
    sets.extend((0..DUE_PARTITIONS).map(Partitions::one));
    for _ in 0..10 {
        sets.push((0..20).map(|_| random.below(usize::from(DUE_PARTITIONS)) as u8).collect::<Partitions>());
    }
    for partitions in sets {
        for kind in KINDS {
            let (from, before) = (random.next() % 20, 10 + random.next() % 60);
            let expected = naive(rows, kind, partitions, from, before);
            let range = Range::Due { kind, partitions, from: Timestamp(from), before: Timestamp(before) };
            for limit in [1, 7, 1_000] {
                let page = engine.scan(&range, limit).await.expect("a scan works");
                assert_eq!(page.items, expected[..limit.min(expected.len())], "{limit} of {range:?}");
                assert_eq!(page.more, limit < expected.len(), "{limit} of {range:?}");
            }
        }
    }
}

pub(super) async fn what_is_due_is_found_by_its_partitions<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut random = Random(7);
    let mut all = rows(&mut random);
    write(&*engine, all.clone().into_iter().map(|(key, row)| (key, Some(row))), []).await;
    same(&*engine, &all, &mut random).await;
    // Some are due at another time, and some are gone.
    let later = rows(&mut random);
    let mut changes: Vec<(Key, Option<Row>)> = Vec::new();
    for (number, (key, row)) in later.into_iter().enumerate() {
        match number % 3 {
            0 => changes.push((key, Some(row))),
            1 => changes.push((key, None)),
            _ => {}
        }
    }
    for (key, row) in &changes {
        match row {
            Some(row) => _ = all.insert(key.clone(), row.clone()),
            None => _ = all.remove(key),
        }
    }
    write(&*engine, changes, []).await;
    same(&*engine, &all, &mut random).await;
    let engine = stand.reopen(engine).await;
    same(&*engine, &all, &mut random).await;
}
