//! What a caller sees: rows, order, snapshots, reopening, the lock, the format, backups.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::{ops::Bound, path::Path, time::Duration};

use tally_embedded::store::{Batch, Options, Row, Store, StoreError, Sync};
use tempfile::tempdir;

fn small() -> Options {
    Options { overlay_bytes_max: 2_000, segment_bytes: 4_096, cache_bytes: 1 << 20, ..Options::default() }
}

fn open(path: &Path) -> Store {
    Store::open(path, small()).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn put(store: &Store, rows: &[(&str, &str)]) -> u64 {
    let mut batch = Batch::new();
    for (key, value) in rows {
        batch.put(key.as_bytes(), value.as_bytes());
    }
    runtime().block_on(store.ready()).unwrap();
    store.apply(&batch).unwrap()
}

fn wait(store: &Store, position: u64) {
    runtime().block_on(store.wait(position)).unwrap();
}

fn text(rows: Vec<Row>) -> Vec<(String, String)> {
    let word = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    rows.iter().map(|(key, value)| (word(key), word(value))).collect()
}

fn keys(store: &Store, range: (Bound<&[u8]>, Bound<&[u8]>), limit: usize, reverse: bool) -> String {
    let rows = text(store.scan(range, limit, reverse).unwrap());
    rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>().join(" ")
}

#[test]
fn rows_are_seen_at_once_and_after_reopening() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    put(&store, &[("a", "1"), ("b", "2")]);
    assert_eq!(store.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(store.get(b"c").unwrap(), None);
    let mut batch = Batch::new();
    batch.delete(b"a");
    batch.put(b"c", b"3");
    let last = store.apply(&batch).unwrap();
    assert_eq!(store.position(), last);
    wait(&store, last);
    assert!(store.durable() >= last);
    drop(store);

    let store = open(folder.path());
    assert_eq!(store.position(), last);
    let many = store.get_many(&["a", "b", "c"]).unwrap();
    assert_eq!(many.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(put(&store, &[("d", "4")]), last + 1);
}

#[test]
fn scans_respect_bounds_direction_and_limit() {
    use Bound::{Excluded, Included, Unbounded};
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    put(&store, &[("b", "1"), ("d", "1"), ("c", "1"), ("a", "1")]);
    let all = (Unbounded, Unbounded);
    assert_eq!(keys(&store, all, 9, false), "a b c d");
    assert_eq!(keys(&store, all, 2, true), "d c");
    assert_eq!(keys(&store, (Included(b"b"), Excluded(b"d")), 9, false), "b c");
    assert_eq!(keys(&store, (Excluded(b"b"), Included(b"d")), 9, true), "d c");
    assert_eq!(keys(&store, (Included(b"c"), Included(b"b")), 9, false), "");
    assert_eq!(keys(&store, (Excluded(b"b"), Excluded(b"b")), 9, false), "");
    assert_eq!(keys(&store, all, 0, false), "");
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    put(&store, &[("a", "old"), ("b", "old")]);
    let snapshot = store.snapshot();
    let filler = "x".repeat(200);
    for n in 0..200 {
        put(&store, &[("a", "new"), (&format!("filler{n:04}"), &filler)]);
    }
    let mut batch = Batch::new();
    batch.delete(b"b");
    wait(&store, store.apply(&batch).unwrap());
    let rows = snapshot.iter().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    let old = [("a".into(), "old".into()), ("b".into(), "old".into())];
    assert_eq!(text(rows), old);
    assert_eq!(snapshot.get(b"a").unwrap().as_deref(), Some(&b"old"[..]));
    assert_eq!(store.get(b"a").unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(store.get(b"b").unwrap(), None);
}

#[test]
fn a_second_opener_is_told_which_folder_is_taken() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let error = Store::open(folder.path(), small()).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }));
    assert!(error.to_string().contains(&folder.path().display().to_string()));
    drop(store);
    open(folder.path());
}

#[test]
fn a_newer_format_and_a_strangers_folder_are_refused() {
    let folder = tempdir().unwrap();
    drop(open(folder.path()));
    std::fs::write(folder.path().join("FORMAT"), "tally store format 5\n").unwrap();
    let error = Store::open(folder.path(), small()).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { found: 5, known: 4, .. }));
    std::fs::write(folder.path().join("FORMAT"), "tally store format 1\n").unwrap();
    let error = Store::open(folder.path(), small()).unwrap_err();
    assert!(matches!(error, StoreError::OlderFormat { found: 1, .. }));

    let other = tempdir().unwrap();
    std::fs::write(other.path().join("holiday.jpg"), "").unwrap();
    let error = Store::open(other.path(), small()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }));
}

#[test]
fn an_interrupted_creation_is_finished_and_a_lost_format_file_is_not() {
    let folder = tempdir().unwrap();
    drop(open(folder.path()));
    std::fs::remove_file(folder.path().join("FORMAT")).unwrap();
    let store = open(folder.path());
    wait(&store, put(&store, &[("a", "1")]));
    drop(store);
    std::fs::remove_file(folder.path().join("FORMAT")).unwrap();
    let error = Store::open(folder.path(), small()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn missing_pieces_are_named() {
    for piece in ["log", "rows", "rows/current", "rows/tables"] {
        let folder = tempdir().unwrap();
        let store = open(folder.path());
        for n in 0..300 {
            put(&store, &[(&format!("row{n:05}"), "some value that takes its place")]);
        }
        drop(store);
        drop(open(folder.path()));
        let path = folder.path().join(piece);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
        let error = Store::open(folder.path(), small()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{piece}: {error}");
    }
}

#[test]
fn a_backup_taken_while_writing_equals_its_snapshot_and_is_a_store() {
    let folder = tempdir().unwrap();
    let target = tempdir().unwrap();
    let copy = target.path().join("copy");
    let store = open(folder.path());
    for n in 0..100 {
        put(&store, &[(&format!("row{n:05}"), &"v".repeat(n))]);
    }
    let report = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..400 {
                put(&store, &[(&format!("late{n:05}"), "w"), ("row00000", "changed")]);
            }
        });
        let report = store.backup(&copy, |_, _| {}).unwrap();
        writer.join().unwrap();
        report
    });
    let again = store.backup(&copy, |_, _| {}).unwrap_err();
    assert!(matches!(again, StoreError::TargetExists { .. }));

    let copied = open(&copy);
    assert_eq!(copied.position(), report.position);
    let rows = text(copied.scan((Bound::Unbounded, Bound::Unbounded), usize::MAX, false).unwrap());
    assert_eq!(rows.len() as u64, report.rows);
    // Every batch wrote one late row, so their number is the moment.
    let late = rows.iter().filter(|(key, _)| key.starts_with("late")).count() as u64;
    assert_eq!(late, report.position - 100);
    put(&copied, &[("more", "rows")]);
    assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 1, "nothing partial stays");
}

#[test]
fn a_check_reads_everything() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    for n in 0..500 {
        put(&store, &[(&format!("row{n:05}"), "some value that takes its place")]);
    }
    wait(&store, 500);
    assert_eq!(store.check(|_, _| {}).unwrap().rows, 500);
}

#[test]
fn with_an_interval_waiting_is_short_and_closing_syncs() {
    let folder = tempdir().unwrap();
    let options = Options { sync: Sync::Every(Duration::from_secs(3_600)), ..small() };
    let store = Store::open(folder.path(), options).unwrap();
    let first = put(&store, &[("a", "1")]);
    wait(&store, first);
    let last = put(&store, &[("b", "2")]);
    wait(&store, last);
    store.close();
    assert_eq!(store.durable(), last);
    let mut batch = Batch::new();
    batch.put(b"c", b"3");
    assert!(matches!(store.apply(&batch), Err(StoreError::Closed)));
    drop(store);
    let store = open(folder.path());
    assert_eq!(store.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
}
