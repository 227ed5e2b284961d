//! A full disk, and a read-only one: writes are refused, reads go on, and writes resume by themselves when there is space.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod store_common;

use std::{path::Path, process::Command};

use store_common::{block_on, commit, numbered, numbered_len, tiny};
use tally_embedded::store::{Batch, Options, State, Store, StoreError};

/// A small file system of its own, gone when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(kib: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder.path())
            .status()
            .expect("this test needs the command `mount`");
        assert!(mounted.success(), "this test mounts a small tmpfs, for which it must be run as root");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.path()).status());
    }
}

fn remount(disk: &SmallDisk, how: &str) {
    let mounted = Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(disk.path()).status().unwrap();
    assert!(mounted.success(), "the disk can be remounted {how}");
}

fn fill(disk: &SmallDisk) {
    use std::io::Write;
    let mut file = std::fs::File::create(disk.path().join("filler")).unwrap();
    for size in [64 << 10, 4 << 10, 512, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

fn free(disk: &SmallDisk) {
    std::fs::remove_file(disk.path().join("filler")).unwrap();
}

/// Writes until it is refused. Gives the last batch that was acknowledged.
fn write_until_refused(store: &Store, from: u64) -> (u64, StoreError) {
    let mut batch = Batch::new();
    for n in from + 1.. {
        numbered(&mut batch, n);
        if let Err(error) = commit(store, &batch) {
            return (n - 1, error);
        }
    }
    unreachable!("the disk is full at some point");
}

/// The store tries again every second, so this waits for it as a caller would: by trying.
fn write_until_taken(store: &Store, n: u64) {
    let mut batch = Batch::new();
    numbered(&mut batch, n);
    while let Err(error) = commit(store, &batch) {
        assert!(error.is_transient(), "{error}");
        std::thread::yield_now();
    }
}

fn full_then_free(options: Options, kib: u32) {
    let disk = SmallDisk::new(kib);
    let folder = disk.path().join("store");
    let store = Store::open(&folder, options.clone()).unwrap();
    let mut last = 0;
    for _ in 0..2 {
        fill(&disk);
        let (acknowledged, error) = write_until_refused(&store, last);
        assert!(error.is_transient(), "{error}");
        assert_eq!(numbered_len(&store), acknowledged, "what was refused is not visible");
        free(&disk);
        last = acknowledged + 1;
        write_until_taken(&store, last);
        assert_eq!(numbered_len(&store), last);
    }
    assert_eq!(store.stats().state, State::Running);
    drop(store);
    assert_eq!(numbered_len(&Store::open(&folder, options).unwrap()), last);
}

#[test]
fn a_log_that_finds_no_space_recovers() {
    // Nothing moves into the tables, so that the log is what fails.
    full_then_free(Options { overlay_bytes_max: 1 << 30, ..tiny() }, 512);
}

#[test]
fn tables_that_find_no_space_recover() {
    // Segments fit for long, so that the tables are what fails.
    full_then_free(Options { overlay_bytes_max: 4_000, segment_bytes: 256 << 10, ..tiny() }, 2_048);
}

#[test]
fn a_store_killed_on_a_full_disk_opens_when_there_is_space() {
    let disk = SmallDisk::new(512);
    let folder = disk.path().join("store");
    let store = Store::open(&folder, tiny()).unwrap();
    fill(&disk);
    let (acknowledged, _) = write_until_refused(&store, 0);
    let error = block_on(store.ready()).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    drop(store);
    let refused = Store::open(&folder, tiny()).unwrap_err();
    assert!(refused.is_transient(), "{refused}");
    free(&disk);
    assert_eq!(numbered_len(&Store::open(&folder, tiny()).unwrap()), acknowledged);
}

#[test]
fn a_store_on_a_read_only_disk_says_so_and_opens_when_it_can_be_written() {
    let disk = SmallDisk::new(4_096);
    let folder = disk.path().join("store");
    let store = Store::open(&folder, tiny()).unwrap();
    let mut batch = Batch::new();
    for n in 1..=50 {
        numbered(&mut batch, n);
        commit(&store, &batch).unwrap();
    }
    drop(store);
    remount(&disk, "ro");
    let error = Store::open(&folder, tiny()).unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("Read-only file system"), "{error}");
    remount(&disk, "rw");
    assert_eq!(numbered_len(&Store::open(&folder, tiny()).unwrap()), 50);
}
