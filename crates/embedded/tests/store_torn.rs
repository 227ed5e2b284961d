//! Files that are cut or altered: a store opens to a moment of its history, or says what is wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod store_common;

use std::path::{Path, PathBuf};

use store_common::{Random, commit, copy_folder, files, hurt_copy, numbered, numbered_len, tiny};
use tally_embedded::store::{Batch, Options, Store, StoreError};

/// A folder as a crash leaves it after `n` durable batches: copied while the store is open.
fn crashed(n: u64, options: Options, into: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), options).unwrap();
    let mut batch = Batch::new();
    for n in 1..=n {
        numbered(&mut batch, n);
        commit(&store, &batch).unwrap();
    }
    // Closing stops the threads that change files, and writes nothing that a crash would not have left.
    store.close();
    copy_folder(folder.path(), into);
}

/// Nothing moves out of the log.
fn log_only() -> Options {
    Options { overlay_bytes_max: 1 << 30, ..tiny() }
}

fn newest_segment(folder: &Path) -> PathBuf {
    let log = files(&folder.join("log"));
    let segments = log.into_iter().filter(|path| path.extension().is_some_and(|end| end == "log"));
    // Spares and segments without records are not what a torn write hits.
    segments.max_by_key(|path| path.file_name().map(ToOwned::to_owned)).unwrap()
}

fn open(folder: &Path) -> Result<Store, StoreError> {
    Store::open(folder, tiny())
}

#[test]
fn a_cut_newest_segment_gives_a_prefix_without_the_batches_that_were_cut() {
    let whole = tempfile::tempdir().unwrap();
    crashed(120, log_only(), whole.path());
    let mut random = Random(1);
    for _ in 0..40 {
        let cut = tempfile::tempdir().unwrap();
        copy_folder(whole.path(), cut.path());
        let newest = newest_segment(cut.path());
        let file = std::fs::OpenOptions::new().write(true).open(&newest).unwrap();
        let keep = random.below(file.metadata().unwrap().len() as usize);
        file.set_len(keep as u64).unwrap();
        match open(cut.path()) {
            Ok(store) => {
                let n = numbered_len(&store);
                assert!(n > 60, "only the newest segment is cut, yet {n} batches are left");
                // What was cut is gone for good, and the store goes on from there.
                let mut batch = Batch::new();
                numbered(&mut batch, n + 1);
                commit(&store, &batch).unwrap();
                drop(store);
                assert_eq!(numbered_len(&open(cut.path()).unwrap()), n + 1);
            }
            Err(StoreError::Damaged { file, .. }) => assert!(keep < 64 && file == newest, "{keep}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_in_the_log_is_refused_or_costs_only_the_end() {
    let whole = tempfile::tempdir().unwrap();
    crashed(120, log_only(), whole.path());
    let mut random = Random(1);
    let mut refused = 0;
    for _ in 0..60 {
        let flipped = tempfile::tempdir().unwrap();
        copy_folder(whole.path(), flipped.path());
        let log = files(&flipped.path().join("log"));
        let path = &log[random.below(log.len())];
        let mut bytes = std::fs::read(path).unwrap();
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
        std::fs::write(path, bytes).unwrap();
        match open(flipped.path()) {
            // Only the very last batch has nothing after it that proves it.
            Ok(store) => assert!(numbered_len(&store) >= 119),
            Err(StoreError::Damaged { .. }) => {
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 10, "most bits of a full log matter, yet only {refused} were missed");
}

#[test]
fn a_missing_segment_is_refused_with_what_is_missing() {
    for missing in [0, 2] {
        let folder = tempfile::tempdir().unwrap();
        crashed(120, log_only(), folder.path());
        let log = files(&folder.path().join("log"));
        let mut segments = log.iter().filter(|path| path.extension().is_some_and(|end| end == "log"));
        std::fs::remove_file(segments.nth(missing).unwrap()).unwrap();
        let error = open(folder.path()).unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { why, .. } if why.contains("missing")), "{error}");
    }
}

#[test]
fn cut_or_altered_files_anywhere_never_panic_and_never_show_a_moment_that_never_was() {
    let whole = tempfile::tempdir().unwrap();
    crashed(300, tiny(), whole.path());
    let mut random = Random(1);
    for round in 0..120 {
        let (hurt, _) = hurt_copy(whole.path(), round % 2 == 0, &mut random);
        // An altered table may open; reading it is then an error, never another row.
        if let Ok(store) = open(hurt.path())
            && let Ok(report) = store.check(|_, _| {})
        {
            assert!(report.rows > 0);
            numbered_len(&store);
        }
    }
}
