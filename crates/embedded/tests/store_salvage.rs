//! Damaged stores: what can be read is saved into a new one, what cannot is named, and the damaged one is left alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod store_common;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use store_common::{Random, commit, copy_folder, files, hurt_copy, numbered, numbered_len, numbered_rows, rows, tiny};
use tally_embedded::store::{Batch, SalvageReport, Store, StoreError, salvage};

/// A store of `n` batches, closed.
fn store_of(n: u64, into: &Path) {
    let store = Store::open(into, tiny()).unwrap();
    let mut batch = Batch::new();
    for n in 1..=n {
        numbered(&mut batch, n);
        commit(&store, &batch).unwrap();
    }
}

fn bytes_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(folder).into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Salvages, and looks that nothing was touched and that what came out is a store.
fn saved(damaged: &Path) -> (Store, SalvageReport, tempfile::TempDir) {
    let before = bytes_of(damaged);
    let target = tempfile::tempdir().unwrap();
    let report = salvage(damaged, &target.path().join("new"), |_, _| {}).unwrap();
    assert_eq!(bytes_of(damaged), before, "the damaged store is only read");
    assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 1, "nothing partial stays");
    let store = Store::open(&target.path().join("new"), tiny()).unwrap();
    assert_eq!(store.check(|_, _| {}).unwrap().rows, report.rows);
    (store, report, target)
}

#[test]
fn of_a_whole_store_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    store_of(300, folder.path());
    let (store, report, _target) = saved(folder.path());
    assert_eq!((numbered_len(&store), report.lost), (300, Vec::new()));
    let mut batch = Batch::new();
    numbered(&mut batch, 301);
    commit(&store, &batch).unwrap();
    assert_eq!(numbered_len(&store), 301);
}

#[test]
fn what_is_missing_is_named_and_the_rest_is_saved() {
    let whole = tempfile::tempdir().unwrap();
    store_of(300, whole.path());
    let tables = files(&whole.path().join("rows/tables"));
    let log = files(&whole.path().join("log"));
    let largest = tables.iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let part = |path: &Path| path.strip_prefix(whole.path()).unwrap().to_path_buf();
    for (missing, word) in [
        (part(largest), "table"),
        (part(&log[0]), "log segment"),
        ("rows/current".into(), "list of tables"),
        ("FORMAT".into(), ""),
        ("log".into(), "the whole log"),
        ("rows".into(), "list of tables"),
    ] {
        let hurt = tempfile::tempdir().unwrap();
        copy_folder(whole.path(), hurt.path());
        let path = hurt.path().join(&missing);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap()
        } else {
            std::fs::remove_file(path).unwrap()
        }
        let refused = Store::open(hurt.path(), tiny());
        let (store, report, _target) = saved(hurt.path());
        assert!(
            report.lost.iter().any(|lost| lost.contains(word)) || word.is_empty(),
            "{missing:?}: {:?}",
            report.lost
        );
        // The last rows are in the log, the others in the tables.
        let expected = numbered_rows(300);
        let found = rows(&store);
        let kept = expected.iter().filter(|(key, value)| found.get(*key) == Some(value)).count();
        assert!(kept > 0, "{missing:?}: {:?}", report.lost);
        assert_eq!(kept == expected.len(), missing == Path::new("FORMAT") || missing == Path::new("rows/current"));
        if let Err(error @ StoreError::Damaged { .. }) = refused {
            let command = format!("tally salvage {} --to NEW", hurt.path().display());
            assert!(error.to_string().contains(&command), "{error}");
        }
    }
}

#[test]
fn one_bad_block_costs_its_own_rows_only() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), tiny()).unwrap();
    let mut batch = Batch::new();
    for n in 0..4_000_u64 {
        batch.put(format!("row-{n:05}").as_bytes(), &n.to_le_bytes().repeat(8));
    }
    commit(&store, &batch).unwrap();
    while store.stats().overlays_frozen > 0 {
        std::thread::yield_now();
    }
    drop(store);
    let tables = files(&folder.path().join("rows/tables"));
    let table = tables.iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(table).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 4;
    std::fs::write(table, bytes).unwrap();
    let (store, report, _target) = saved(folder.path());
    assert!(report.rows > 3_500 && report.rows < 4_000 && report.lost.len() == 1, "{report:?}");
    assert!(rows(&store).iter().all(|(key, value)| {
        let n: u64 = std::str::from_utf8(&key[4..]).unwrap().parse().unwrap();
        *value == n.to_le_bytes().repeat(8)
    }));
}

#[test]
fn a_gap_in_the_log_costs_what_is_in_it_and_not_what_is_behind() {
    let folder = tempfile::tempdir().unwrap();
    let options = tally_embedded::store::Options { overlay_bytes_max: 1 << 30, ..tiny() };
    let store = Store::open(folder.path(), options).unwrap();
    for n in 1..=120_u64 {
        let mut batch = Batch::new();
        batch.put(format!("row-{n:05}").as_bytes(), &[7; 40]);
        commit(&store, &batch).unwrap();
    }
    drop(store);
    let log = files(&folder.path().join("log"));
    let mut segment = std::fs::read(&log[1]).unwrap();
    segment[600] ^= 1;
    std::fs::write(&log[1], segment).unwrap();
    assert!(matches!(Store::open(folder.path(), tiny()), Err(StoreError::Damaged { .. })));
    let (store, report, _target) = saved(folder.path());
    assert_eq!((rows(&store).len(), report.lost.len()), (119, 1), "{:?}", report.lost);
}

#[test]
fn whatever_is_cut_or_altered_salvage_ends_with_a_store() {
    let whole = tempfile::tempdir().unwrap();
    store_of(300, whole.path());
    let mut random = Random(7);
    for round in 0..60 {
        let (hurt, path) = hurt_copy(whole.path(), round % 2 == 0, &mut random);
        let (store, report, _target) = saved(hurt.path());
        if report.lost.is_empty() {
            // Cut at its end, the log is merely shorter.
            assert!(numbered_len(&store) > 250, "{path:?}");
        }
    }
}

#[test]
fn a_store_in_use_and_a_target_in_use_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("a"), tiny()).unwrap();
    let target = folder.path().join("b");
    let salvaged = salvage(&folder.path().join("a"), &target, |_, _| {});
    assert!(matches!(salvaged, Err(StoreError::Locked { .. })));
    drop(store);
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("mine"), "").unwrap();
    let salvaged = salvage(&folder.path().join("a"), &target, |_, _| {});
    assert!(matches!(salvaged, Err(StoreError::TargetExists { .. })));
}
