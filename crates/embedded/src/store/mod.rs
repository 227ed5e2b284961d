//! A store of ordered rows in one folder: keys and values are bytes, batches are atomic and durable.
//!
//! The **log** is the commit point. [`Store::apply`] puts a batch into the log's buffer and into the
//! **overlay**, rows in memory that readers look at first; one thread writes the buffer and syncs it, while
//! the next batches gather. A full overlay is frozen, and another thread moves it into the **tables** on
//! disk in one sorted bulk, behind the answer. The position up to which that has happened is in the same
//! bulk, so opening a store is: read the tables' position, read the log from there.
//!
//! What is absent on purpose: transactions that read (one writer decides, see the engine), locks on rows,
//! and a journal of the tables' own.

mod backup;
mod batch;
#[cfg(test)]
pub(crate) mod by_hand;
mod check;
mod error;
mod folder;
mod log;
mod merge;
mod mover;
mod open;
mod options;
mod order;
mod overlay;
mod partial;
mod read;
mod record;
mod replay;
mod salvage;
mod segment;
mod shared;
mod snapshot;
mod sort;
mod stats;
mod syncer;
mod tables;
mod versions;
mod wait;

use std::{
    ops::Bound,
    path::Path,
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

pub use backup::BackupReport;
pub use batch::{BATCH_BYTES_MAX, Batch, KEY_BYTES_MAX};
pub use byteview::ByteView as Bytes;
pub use check::CheckReport;
pub use error::{Result, StoreError};
pub use folder::FORMAT;
pub use merge::Row;
pub use options::{Options, Sync};
pub use partial::{Partial, remove_left};
pub use salvage::{SalvageReport, salvage};
pub use shared::State;
pub use snapshot::Snapshot;
pub use stats::Stats;

use shared::Shared;

/// Counts the batches of a store, from one. Later batches have larger positions.
pub type Position = u64;

/// See [`Store::moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The last position that can be read.
    pub position: Position,
    /// How often batches were taken back.
    pub taken_back: usize,
}

/// A store that is open. Share it behind an `Arc`; it closes when dropped.
pub struct Store {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Store {
    /// Opens the store in a folder, and creates it where there is none.
    ///
    /// # Errors
    /// Another process has it open, it is damaged, it is of a newer format, or the disk refuses.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let (shared, log) = open::open(path, options)?;
        let shared = Arc::new(shared);
        let store = Self { shared: shared.clone(), threads: Mutex::default() };
        store.spawn("tally-log-sync", move |shared| syncer::run(shared, log))?;
        store.spawn("tally-log-spare", |shared| shared.log.keep_spares())?;
        store.spawn("tally-rows-move", mover::run)?;
        store.spawn("tally-rows-merge", mover::run_merges)?;
        Ok(store)
    }

    fn spawn(&self, name: &str, work: impl FnOnce(&Shared) + Send + 'static) -> Result<()> {
        use error::Doing;

        let shared = self.shared.clone();
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || work(&shared))
            .doing("start a thread for", self.shared.folder.path())?;
        self.threads.lock().expect("no holder of this lock panics").push(thread);
        Ok(())
    }

    /// The value of a row.
    ///
    /// Sees every applied batch, also one that is not durable yet and may still be taken back when the
    /// disk fails: whoever answers with it waits for [`Store::position`] first where that matters.
    ///
    /// # Errors
    /// The tables cannot be read. An unreadable row is never reported as absent.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        read::get(&self.shared, key)
    }

    /// The values of several rows as of one moment, in the order of the keys.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Bytes>>> {
        read::get_many(&self.shared, keys)
    }

    /// Up to `limit` rows of a range as of one moment, in key order or in reverse.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn scan(&self, range: (Bound<&[u8]>, Bound<&[u8]>), limit: usize, reverse: bool) -> Result<Vec<Row>> {
        read::scan(&self.shared, range, limit, reverse)
    }

    /// Makes a batch visible and sends it on its way to the disk; [`Store::wait`] says when it is there.
    /// Batches of several threads are put in an order, which is that of their positions.
    ///
    /// # Errors
    /// Writes are refused at the moment, or the batch is over a limit. Nothing has changed then.
    pub fn apply(&self, batch: &Batch) -> Result<Position> {
        self.shared.apply(batch, None).map(|position| position.expect("it stands on no moment"))
    }

    /// The same for a batch that was made from what was read at `on`: `None`, and nothing is done, if anything was
    /// applied or taken back since.
    ///
    /// # Errors
    /// As [`Store::apply`].
    pub fn apply_if(&self, batch: &Batch, on: Moment) -> Result<Option<Position>> {
        self.shared.apply(batch, Some(on))
    }

    /// The last applied position whose rows are there to be read: a batch that is taken back moves it back.
    #[must_use]
    pub fn position(&self) -> Position {
        self.shared.writer().visible
    }

    /// The same, with how often batches were taken back. If that differs before and after some reads, they may have
    /// seen what was taken back in between.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.shared.writer().moment()
    }

    /// The largest batch that it takes.
    #[must_use]
    pub fn batch_bytes_max(&self) -> usize {
        self.shared.options.batch_bytes_max.min(BATCH_BYTES_MAX)
    }

    /// How often batches were taken back since it was opened.
    #[must_use]
    pub fn taken_back(&self) -> usize {
        self.shared.taken_back()
    }

    /// Everything up to this position survives a crash.
    #[must_use]
    pub fn durable(&self) -> Position {
        self.shared.durable()
    }

    /// Resolves when a position is durable (with [`Sync::Every`]: at once).
    ///
    /// # Errors
    /// The batch was taken back because the disk failed, or the store was closed first.
    pub async fn wait(&self, position: Position) -> Result<()> {
        let outcome = || self.shared.outcome(position);
        self.shared.waiters.wait(position, outcome).await
    }

    /// Resolves when there is room for another batch. Await it before deciding what the batch holds.
    ///
    /// # Errors
    /// Writes are refused at the moment.
    pub async fn ready(&self) -> Result<()> {
        self.shared.unready.wait(0, || self.shared.readiness()).await
    }

    /// Everything as of one moment, for as long as the snapshot is held. Does not block anybody.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.shared.clone())
    }

    /// Writes a copy of the store as of now, while it is in use. The copy is itself a store.
    /// `progress` gets the rows and bytes written so far.
    ///
    /// # Errors
    /// The target is not empty, another backup of that name is being made, or a disk refuses. A failed backup leaves nothing at the target.
    pub fn backup(&self, target: &Path, progress: impl FnMut(u64, u64)) -> Result<BackupReport> {
        backup::backup(&self.shared, target, progress)
    }

    /// Reads everything and verifies every checksum. `progress` gets the rows and bytes read so far.
    ///
    /// # Errors
    /// What is damaged, or a disk that refuses.
    pub fn check(&self, progress: impl FnMut(u64, u64)) -> Result<CheckReport> {
        check::check(&self.shared, progress)
    }

    /// How the store is doing.
    #[must_use]
    pub fn stats(&self) -> Stats {
        stats::stats(&self.shared)
    }

    /// Syncs what was applied and stops. Rows that are in the log only are left there for the next opening,
    /// so that stopping is quick. The folder stays locked while a [`Snapshot`] is held.
    pub fn close(&self) {
        {
            let mut writer = self.shared.writer();
            writer.closing = true;
        }
        self.shared.written.notify_all();
        self.shared.tables.stop();
        self.shared.mover().closing = true;
        self.shared.moved.notify_all();
        self.shared.log.close();
        let threads = std::mem::take(&mut *self.threads.lock().expect("no holder of this lock panics"));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the store had panicked");
            }
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Store").field("folder", &self.shared.folder.path()).finish_non_exhaustive()
    }
}
