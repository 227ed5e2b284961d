//! The store against a map in memory, under random use.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod store_common;

use std::ops::Bound;

use proptest::prelude::*;
use store_common::{Model, block_on, commit, rows, tiny};
use tally_embedded::store::{Batch, Snapshot, Store};

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<(u16, Option<u8>)>),
    Get(u16),
    Scan { low: u16, high: u16, limit: usize, reverse: bool },
    TakeSnapshot,
    CheckSnapshot,
    Wait,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let row = (0u16..60, prop::option::weighted(0.7, any::<u8>()));
    let step = prop_oneof![
        12 => prop::collection::vec(row, 0..20).prop_map(Step::Write),
        3 => (0u16..60).prop_map(Step::Get),
        5 => (0u16..60, 0u16..60, 0usize..30, any::<bool>())
            .prop_map(|(low, high, limit, reverse)| Step::Scan { low, high, limit, reverse }),
        1 => Just(Step::TakeSnapshot),
        2 => Just(Step::CheckSnapshot),
        2 => Just(Step::Wait),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..80)
}

fn key(n: u16) -> Vec<u8> {
    format!("{}shared beginning of keys {n:05}", ["a", "b", "c"][usize::from(n % 3)]).into_bytes()
}

fn value(n: u8) -> Vec<u8> {
    vec![n; usize::from(n) % 70]
}

fn run(steps: Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), tiny()).unwrap();
    let mut model = Model::new();
    let mut snapshot: Option<(Snapshot, Model)> = None;
    for step in steps {
        match step {
            Step::Write(changes) => {
                let mut batch = Batch::new();
                for (n, new) in changes {
                    match new {
                        Some(new) => {
                            batch.put(&key(n), &value(new));
                            model.insert(key(n), value(new));
                        }
                        None => {
                            batch.delete(&key(n));
                            model.remove(&key(n));
                        }
                    }
                }
                block_on(store.ready()).unwrap();
                store.apply(&batch).unwrap();
            }
            Step::Get(n) => {
                assert_eq!(store.get(&key(n)).unwrap().as_deref(), model.get(&key(n)).map(Vec::as_slice));
            }
            Step::Scan { low, high, limit, reverse } => {
                let (low, high) = (key(low), key(high));
                let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
                let found = store.scan(range, limit, reverse).unwrap();
                let inside = model.iter().filter(|(key, _)| **key >= low && **key < high);
                let expected: Vec<_> =
                    if reverse { inside.rev().take(limit).collect() } else { inside.take(limit).collect() };
                assert_eq!(found.len(), expected.len());
                for ((key, value), (expected_key, expected_value)) in found.iter().zip(expected) {
                    assert_eq!((&**key, &**value), (&expected_key[..], &expected_value[..]));
                }
            }
            Step::TakeSnapshot => snapshot = Some((store.snapshot(), model.clone())),
            Step::CheckSnapshot => {
                if let Some((snapshot, model)) = &snapshot {
                    let rows = snapshot.iter().unwrap().map(|row| row.unwrap());
                    let rows: Model = rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                    assert_eq!(&rows, model);
                }
            }
            Step::Wait => {
                block_on(store.wait(store.position())).unwrap();
            }
            Step::Reopen => {
                let position = store.position();
                snapshot = None;
                drop(store);
                store = Store::open(folder.path(), tiny()).unwrap();
                assert_eq!(store.position(), position);
            }
        }
    }
    assert_eq!(rows(&store), model);
    commit(&store, &Batch::new()).unwrap();
    assert_eq!(store.check(|_, _| {}).unwrap().rows, model.len() as u64);
    drop(snapshot);
    drop(store);
    assert_eq!(rows(&Store::open(folder.path(), tiny()).unwrap()), model);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_an_ordered_map(steps in steps()) {
        run(steps);
    }
}

#[test]
fn a_long_history_with_many_rotations_stays_small() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), tiny()).unwrap();
    let mut batch = Batch::new();
    for n in 1..=3_000 {
        store_common::numbered(&mut batch, n);
        block_on(store.ready()).unwrap();
        store.apply(&batch).unwrap();
    }
    block_on(store.wait(store.position())).unwrap();
    assert_eq!(store_common::numbered_len(&store), 3_000);
    // About 300 KB of batches have gone through segments of 2 KB.
    assert!(store.stats().log_segments < 40, "{:?}", store.stats());
}

#[test]
fn several_writers_and_readers_see_whole_batches() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), tiny()).unwrap();
    let writers = 3;
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let store = &store;
            scope.spawn(move || {
                let mut batch = Batch::new();
                for n in 0u64..300 {
                    batch.clear();
                    for side in ["left", "right"] {
                        batch.put(format!("{side}{writer}").as_bytes(), &n.to_le_bytes());
                    }
                    commit(store, &batch).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..500 {
                let all = rows(&store);
                let many = store.get_many(&["left0", "right0"]).unwrap();
                assert_eq!(many[0], many[1]);
                for writer in 0..writers {
                    let side = |side: &str| all.get(format!("{side}{writer}").as_bytes()).cloned();
                    assert_eq!(side("left"), side("right"));
                }
            }
        });
    });
    assert_eq!(store.position(), 900);
}
