//! What the callers' threads and the store's own threads share.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use byteview::ByteView;

use super::{
    Moment,
    batch::Batch,
    error::{Result, StoreError},
    folder::Folder,
    log::LogFolder,
    options::{Options, Sync},
    overlay::Overlays,
    record,
    tables::Tables,
    wait::Waiters,
};

/// How long to wait before a failed log or a failed move into the tables is tried again: hardly at first, since
/// most faults are gone at once, then a second.
#[derive(Debug, Default)]
pub(super) struct Retry {
    tries: u32,
}

impl Retry {
    pub(super) fn next(&mut self) -> Duration {
        self.tries += 1;
        Duration::from_millis(5 << self.tries.min(8)).min(Duration::from_secs(1))
    }
}

/// So many bytes may wait for the disk before callers are asked to wait.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// So many overlays' worth of rows may wait for the tables before callers are asked to wait.
const FROZEN_OVERLAYS_MAX: usize = 3;

pub(super) struct Shared {
    pub(super) folder: Folder,
    pub(super) options: Options,
    pub(super) log: LogFolder,
    pub(super) tables: Tables,
    pub(super) overlays: RwLock<Overlays>,
    pub(super) writer: Mutex<Writer>,
    /// Wakes the sync thread.
    pub(super) written: Condvar,
    /// Everything up to here survives a crash.
    pub(super) durable: AtomicU64,
    pub(super) waiters: Waiters,
    /// Callers that wait in `ready`.
    pub(super) unready: Waiters,
    pub(super) mover: Mutex<Mover>,
    /// Wakes the threads that fill and merge the tables.
    pub(super) moved: Condvar,
    pub(super) sync_micros: AtomicU64,
    /// Set once any batch was taken back, so that the usual `wait` need not look for it.
    any_discarded: AtomicBool,
}

/// The writing side, under one lock.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// The last position given out.
    pub(super) last: u64,
    /// The last position whose rows can be read.
    pub(super) visible: u64,
    /// Framed records that the sync thread has not taken yet.
    pub(super) pending: Vec<u8>,
    pub(super) state: State,
    /// Positions that were given out and then taken back, with the reason.
    pub(super) discarded: Vec<Discarded>,
    /// Bumped whenever batches are taken back: when they are refused, and, if the disk did not let their rows go at once,
    /// when those go. Rows that are read at one number fit each other.
    pub(super) taken_back: usize,
    /// Whether the sync thread sleeps, so that waking it is worth a system call.
    pub(super) asleep: bool,
    pub(super) closing: bool,
}

#[derive(Debug)]
pub(super) struct Discarded {
    pub(super) after: u64,
    pub(super) up_to: u64,
    pub(super) why: String,
    /// Whether it stays away even if the machine crashes.
    pub(super) sure: bool,
}

impl Writer {
    pub(super) fn moment(&self) -> Moment {
        Moment { position: self.visible, taken_back: self.taken_back }
    }
}

/// Whether the store takes writes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum State {
    /// It does.
    #[default]
    Running,
    /// The log could not be written; it is tried again every second. Reads go on.
    Failed {
        /// What the system said.
        why: String,
    },
    /// The store was closed.
    Closed,
}

/// What the threads that fill and merge the tables tell each other.
#[derive(Debug, Default)]
pub(super) struct Mover {
    pub(super) closing: bool,
    /// Overlays up to here move however small they are: a run that ended left them, and its segments can
    /// only go after them.
    pub(super) flush_up_to: u64,
    /// Enough keys have gathered to sort them.
    pub(super) sort: bool,
    /// Bumped whenever there may be something to merge.
    pub(super) merges_due: u64,
    /// Why rows cannot be moved into the tables at the moment.
    pub(super) failing: Option<String>,
}

impl Shared {
    pub(super) fn new(
        folder: Folder,
        options: Options,
        log: LogFolder,
        tables: Tables,
        overlays: Overlays,
        last: u64,
    ) -> Self {
        Self {
            folder,
            options,
            log,
            tables,
            overlays: RwLock::new(overlays),
            writer: Mutex::new(Writer { last, visible: last, ..Writer::default() }),
            written: Condvar::new(),
            durable: AtomicU64::new(last),
            waiters: Waiters::default(),
            unready: Waiters::default(),
            mover: Mutex::new(Mover { flush_up_to: last, ..Mover::default() }),
            moved: Condvar::new(),
            sync_micros: AtomicU64::new(0),
            any_discarded: AtomicBool::new(false),
        }
    }

    /// Takes a batch: in the log's buffer and visible when it returns, durable later. No system calls but
    /// the one that wakes a sleeping sync thread. `None`, and nothing is done, if it is to stand on a moment that
    /// has passed.
    pub(super) fn apply(&self, batch: &Batch, on: Option<Moment>) -> Result<Option<u64>> {
        let bytes = batch.payload(self.options.batch_bytes_max)?;
        let payload = ByteView::new(bytes);
        let mut writer = self.writer();
        match &writer.state {
            State::Running => {}
            State::Failed { why } => return Err(StoreError::Unavailable { why: why.clone() }),
            State::Closed => return Err(StoreError::Closed),
        }
        // The log may have failed and recovered since, which takes back rows that the batch was made from.
        if on.is_some_and(|on| on != writer.moment()) {
            return Ok(None);
        }
        if writer.pending.len() > 2 * PENDING_BYTES_MAX {
            return Err(StoreError::Unavailable { why: "the disk does not keep up".into() });
        }
        let position = writer.last + 1;
        {
            let mut overlays = self.overlays_mut();
            // Callers that never ask `ready` are stopped here, so that memory stays bounded.
            if overlays.frozen_bytes() > 2 * self.frozen_bytes_max() {
                return Err(StoreError::Unavailable {
                    why: "rows come in faster than they can be moved into the tables".into(),
                });
            }
            let sort = overlays.active.apply(position, &payload);
            if overlays.active.bytes() >= self.options.overlay_bytes_max {
                overlays.freeze();
                drop(overlays);
                self.nudge_mover();
            } else if sort {
                drop(overlays);
                self.ask_to_sort();
            }
        }
        record::frame(&mut writer.pending, position, bytes);
        writer.last = position;
        writer.visible = position;
        let wake = std::mem::take(&mut writer.asleep);
        drop(writer);
        if wake {
            self.written.notify_one();
        }
        Ok(Some(position))
    }

    /// What has become of a position, once that is known.
    pub(super) fn outcome(&self, position: u64) -> Option<Result<()>> {
        // Looked at first: between the two, this one may be refused and a later one become durable.
        let durable = self.durable() >= position;
        if self.any_discarded.load(Ordering::Acquire)
            && let Some(error) = self.discarded(position)
        {
            return Some(Err(error));
        }
        if matches!(self.options.sync, Sync::Every(_)) || durable {
            return Some(Ok(()));
        }
        (self.writer().state == State::Closed && self.durable() < position).then_some(Err(StoreError::Closed))
    }

    fn discarded(&self, position: u64) -> Option<StoreError> {
        self.writer().discarded.iter().find(|range| range.after < position && position <= range.up_to).map(|range| {
            match range.sure {
                true => StoreError::Discarded { why: range.why.clone() },
                false => StoreError::Unsettled { why: range.why.clone() },
            }
        })
    }

    pub(super) fn taken_back(&self) -> usize {
        if self.any_discarded.load(Ordering::Acquire) { self.writer().taken_back } else { 0 }
    }

    /// Remembers that everything after `after` was taken back.
    pub(super) fn discard(&self, writer: &mut Writer, after: u64, why: &str, sure: bool) {
        if after < writer.last {
            writer.discarded.push(Discarded { after, up_to: writer.last, why: why.into(), sure });
            writer.taken_back += 1;
            self.any_discarded.store(true, Ordering::Release);
        }
        writer.pending.clear();
    }

    /// Whether the next batch may come, or why it never will.
    pub(super) fn readiness(&self) -> Option<Result<()>> {
        {
            let writer = self.writer();
            match &writer.state {
                State::Failed { why } => {
                    return Some(Err(StoreError::Unavailable { why: why.clone() }));
                }
                State::Closed => return Some(Err(StoreError::Closed)),
                State::Running if writer.pending.len() > PENDING_BYTES_MAX => return None,
                State::Running => {}
            }
        }
        if self.overlays().frozen_bytes() <= self.frozen_bytes_max() {
            return Some(Ok(()));
        }
        // Waiting would be for as long as the disk is full, so that is an answer too.
        let failing = self.mover().failing.clone();
        failing.map(|why| Err(StoreError::Unavailable { why }))
    }

    fn frozen_bytes_max(&self) -> usize {
        FROZEN_OVERLAYS_MAX * self.options.overlay_bytes_max
    }

    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    fn ask_to_sort(&self) {
        let asked = std::mem::replace(&mut self.mover().sort, true);
        if !asked {
            self.moved.notify_all();
        }
    }

    pub(super) fn nudge_mover(&self) {
        // The lock orders this after the check of a thread that is about to sleep.
        drop(self.mover());
        self.moved.notify_all();
    }

    pub(super) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().expect("no holder of this lock panics")
    }

    pub(super) fn mover(&self) -> MutexGuard<'_, Mover> {
        self.mover.lock().expect("no holder of this lock panics")
    }

    pub(super) fn overlays(&self) -> RwLockReadGuard<'_, Overlays> {
        self.overlays.read().expect("no holder of this lock panics")
    }

    pub(super) fn overlays_mut(&self) -> RwLockWriteGuard<'_, Overlays> {
        self.overlays.write().expect("no holder of this lock panics")
    }
}
