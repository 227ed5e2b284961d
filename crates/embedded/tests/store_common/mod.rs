//! What the store's tests share.

#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::{
    collections::BTreeMap,
    ops::Bound,
    path::{Path, PathBuf},
};

use tally_embedded::store::{Batch, Options, Result, Store};

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Everything tiny, so that segments rotate, overlays freeze and tables merge within a few batches.
pub(crate) fn tiny() -> Options {
    Options { overlay_bytes_max: 1_500, segment_bytes: 2_048, cache_bytes: 1 << 20, ..Options::default() }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Applies a batch and waits until it is durable.
pub(crate) fn commit(store: &Store, batch: &Batch) -> Result<u64> {
    block_on(async {
        store.ready().await?;
        let position = store.apply(batch)?;
        store.wait(position).await?;
        Ok(position)
    })
}

/// All rows of a store.
pub(crate) fn rows(store: &Store) -> Model {
    let rows = store.scan((Bound::Unbounded, Bound::Unbounded), usize::MAX, false).unwrap();
    rows.into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// The batch that numbered histories consist of: each overwrites one shared row, adds one of its own, and
/// deletes an older one. Any prefix of such a history can be told from its rows.
pub(crate) fn numbered(batch: &mut Batch, n: u64) {
    batch.clear();
    batch.put(b"newest", &n.to_le_bytes());
    batch.put(&numbered_key(n), &vec![n as u8; (n % 97) as usize]);
    if n.is_multiple_of(3) {
        batch.delete(&numbered_key(n / 2));
    }
}

fn numbered_key(n: u64) -> Vec<u8> {
    format!("row{:03}-{n:06}", n * 7919 % 1_000).into_bytes()
}

/// What a history of `n` numbered batches leaves behind.
pub(crate) fn numbered_rows(n: u64) -> Model {
    let mut model = Model::new();
    for n in 1..=n {
        model.insert(b"newest".to_vec(), n.to_le_bytes().to_vec());
        model.insert(numbered_key(n), vec![n as u8; (n % 97) as usize]);
        if n.is_multiple_of(3) {
            model.remove(&numbered_key(n / 2));
        }
    }
    model
}

/// How many batches of a numbered history a store holds; panics unless it is exactly such a prefix.
pub(crate) fn numbered_len(store: &Store) -> u64 {
    let newest = store.get(b"newest").unwrap();
    let n = newest.map_or(0, |value| u64::from_le_bytes(value[..].try_into().unwrap()));
    assert_eq!(rows(store), numbered_rows(n), "the store is not at a moment of its history");
    n
}

/// A copy of a store's folder, as a crash at this moment would leave it.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Every file of a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Numbers with a fixed seed, so that a failure can be repeated.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as usize % limit.max(1)
    }
}

/// A copy of a folder in which one file is cut, or has one bit altered; and which.
pub(crate) fn hurt_copy(whole: &Path, is_cut: bool, random: &mut Random) -> (tempfile::TempDir, PathBuf) {
    let hurt = tempfile::tempdir().unwrap();
    copy_folder(whole, hurt.path());
    let mut all = files(hurt.path());
    let path = all.swap_remove(random.below(all.len()));
    let mut bytes = std::fs::read(&path).unwrap();
    let at = random.below(bytes.len());
    if is_cut || bytes.is_empty() {
        bytes.truncate(at);
    } else {
        bytes[at] ^= 1 << random.below(8);
    }
    std::fs::write(&path, bytes).unwrap();
    (hurt, path)
}
