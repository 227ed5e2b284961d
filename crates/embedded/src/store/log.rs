//! The writing end of the log, and the segments that it leaves behind.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::ErrorKind,
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::{Condvar, Mutex, MutexGuard},
};

use super::{
    error::{Doing, Result},
    folder::sync_folder,
    record,
    segment::{SEGMENT_HEAD_BYTES, SegmentHead, create_zeroed, segment_path},
};

/// A small store should stay small: segments start at this size and double up to the set one.
const SEGMENT_BYTES_MIN: u64 = 4 << 20;

/// How many used-up segments are kept to be used again.
const SPARES_MAX: usize = 2;

/// The folder of segments; shared by the thread that writes, the one that moves rows on, and the keeper.
#[derive(Debug)]
pub(super) struct LogFolder {
    path: PathBuf,
    segment_bytes: u64,
    kept: Mutex<Kept>,
    wanted: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    /// Full segments, oldest first.
    closed: VecDeque<Closed>,
    spares: Vec<Spare>,
    spares_made: u64,
    /// Size of the spare that will be needed soon.
    wanted_bytes: Option<u64>,
    current_bytes: u64,
    closing: bool,
}

#[derive(Debug)]
struct Closed {
    path: PathBuf,
    last: u64,
    bytes: u64,
    /// Whether it may be written to again: the disk never failed under it.
    sound: bool,
}

#[derive(Debug)]
struct Spare {
    path: PathBuf,
    bytes: u64,
}

impl LogFolder {
    pub(super) fn new(path: PathBuf, segment_bytes: u64) -> Self {
        Self { path, segment_bytes: segment_bytes.next_multiple_of(8), kept: Mutex::default(), wanted: Condvar::new() }
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of this lock panics")
    }

    /// Takes up a segment of an earlier run, which is only read from now on.
    pub(super) fn add_closed(&self, path: PathBuf, last: u64) {
        let bytes = fs::metadata(&path).map_or(0, |meta| meta.len());
        // Nobody knows any more whether the disk failed under it.
        self.kept().closed.push_back(Closed { path, last, bytes, sound: false });
    }

    /// Lets go of the segments whose every batch is in the tables. What cannot go now goes the next time.
    pub(super) fn retire(&self, ingested: u64) -> Result<()> {
        let mut kept = self.kept();
        let mut aside = Vec::new();
        let mut outcome = Ok(());
        while let Some(oldest) = kept.closed.front().filter(|oldest| oldest.last <= ingested) {
            let (path, bytes) = (oldest.path.clone(), oldest.bytes);
            let again = oldest.sound && bytes == self.segment_bytes && kept.spares.len() + aside.len() < SPARES_MAX;
            let gone = if again {
                let spare = self.spare_path(&mut kept);
                let renamed = fs::rename(&path, &spare);
                aside.push(Spare { path: spare, bytes });
                renamed
            } else {
                fs::remove_file(&path)
            };
            match gone {
                Ok(()) => {}
                // An earlier try was done, though the system said that it failed.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if again {
                        aside.pop();
                    }
                }
                Err(error) => {
                    outcome = Err(error).doing("let go of", &path);
                    break;
                }
            }
            kept.closed.pop_front();
        }
        drop(kept);
        // A spare gets a new head while it still has its spare's name. If the old name came back after a
        // crash, that head would be taken for damage: so nobody may have it before the old name is gone for good.
        match outcome.and_then(|()| if aside.is_empty() { Ok(()) } else { sync_folder(&self.path) }) {
            Ok(()) => self.kept().spares.extend(aside),
            Err(error) => {
                aside.iter().for_each(|spare| drop(fs::remove_file(&spare.path)));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Makes spares ahead of need, off the path of any write. Runs until [`LogFolder::close`].
    pub(super) fn keep_spares(&self) {
        let mut kept = self.kept();
        while !kept.closing {
            let Some(bytes) = kept.wanted_bytes.take() else {
                kept = self.wanted.wait(kept).expect("no holder of this lock panics");
                continue;
            };
            let path = self.spare_path(&mut kept);
            drop(kept);
            // Not an error yet: the writer tries once more when it needs the segment.
            let made = create_zeroed(&path, bytes);
            kept = self.kept();
            match made {
                Ok(_) => kept.spares.push(Spare { path, bytes }),
                Err(error) => tracing::warn!(%error, "no spare log segment"),
            }
        }
    }

    pub(super) fn close(&self) {
        self.kept().closing = true;
        self.wanted.notify_all();
    }

    /// How many segment files there are, and their bytes.
    pub(super) fn usage(&self) -> (u64, u64) {
        let kept = self.kept();
        let closed = kept.closed.iter().map(|closed| closed.bytes).sum::<u64>();
        let spares = kept.spares.iter().map(|spare| spare.bytes).sum::<u64>();
        ((kept.closed.len() + kept.spares.len() + 1) as u64, closed + spares + kept.current_bytes)
    }

    fn spare_path(&self, kept: &mut Kept) -> PathBuf {
        kept.spares_made += 1;
        self.path.join(format!("spare-{}", kept.spares_made))
    }

    /// A file of zeros or of old records, at least so large.
    fn take_spare(&self, bytes: u64) -> Result<(PathBuf, File, u64)> {
        let mut kept = self.kept();
        if let Some(at) = kept.spares.iter().position(|spare| spare.bytes >= bytes) {
            let spare = kept.spares.swap_remove(at);
            drop(kept);
            let file = OpenOptions::new().read(true).write(true).open(&spare.path).doing("open", &spare.path)?;
            return Ok((spare.path, file, spare.bytes));
        }
        let path = self.spare_path(&mut kept);
        drop(kept);
        let file = create_zeroed(&path, bytes)?;
        Ok((path, file, bytes))
    }
}

/// The segment being written. Owned by the sync thread.
#[derive(Debug)]
pub(super) struct LogWriter {
    file: File,
    path: PathBuf,
    number: u64,
    at: u64,
    /// Up to here something may have been written that was never synced.
    written: u64,
    bytes: u64,
    /// The last position written and synced.
    synced: u64,
    /// Whether a write or a sync of this segment failed.
    failed: bool,
    asked_for_spare: bool,
}

impl LogWriter {
    /// Starts a segment after `follows`. From the moment that this returns, nothing that an earlier segment
    /// holds after `follows` counts any more.
    pub(super) fn start(folder: &LogFolder, number: u64, first: u64, follows: u64, bytes_min: u64) -> Result<Self> {
        let (spare, file, bytes) = folder.take_spare(bytes_min)?;
        let path = segment_path(&folder.path, number);
        let head = SegmentHead { number, first, follows };
        head.write(&file, &spare)
            .and_then(|()| fs::rename(&spare, &path).doing("start", &path))
            .and_then(|()| sync_folder(&folder.path))
            .inspect_err(|_| {
                drop(fs::remove_file(&spare));
                drop(fs::remove_file(&path));
            })?;
        folder.kept().current_bytes = bytes;
        let at = SEGMENT_HEAD_BYTES as u64;
        Ok(Self { file, path, number, at, written: at, bytes, synced: follows, failed: false, asked_for_spare: false })
    }

    /// The first segment of a run.
    pub(super) fn open(folder: &LogFolder, number: u64, first: u64, follows: u64) -> Result<Self> {
        let bytes = folder.segment_bytes.min(SEGMENT_BYTES_MIN);
        Self::start(folder, number, first, follows, bytes)
    }

    /// Takes the place of a segment that failed. `last` is the last position that was ever given out, so
    /// that no position means two batches.
    pub(super) fn restart(&self, folder: &LogFolder, last: u64) -> Result<Self> {
        let fresh = Self::start(folder, self.number + 1, last + 1, self.synced, self.bytes)?;
        self.hand_over(folder);
        Ok(fresh)
    }

    /// Sees to it that nothing behind the last sync is ever read again, so that what is refused stays away. `Ok`
    /// says that this survives a crash of the machine; otherwise it survives at least one of the process.
    pub(super) fn cut(&self) -> Result<()> {
        if self.written <= self.at {
            return Ok(());
        }
        // Reading ends where a record has no position.
        let blank = [0; record::RECORD_HEAD_BYTES];
        self.file
            .write_all_at(&blank, self.at)
            .or_else(|_| self.file.set_len(self.at))
            .and_then(|()| self.file.sync_data())
            .doing("cut the log", &self.path)
    }

    /// The last position that is on disk.
    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Writes framed records and syncs them. On an error, [`LogWriter::synced`] says how far it came, and
    /// the segment must not be written to again.
    pub(super) fn append(&mut self, folder: &LogFolder, framed: &mut [u8]) -> Result<()> {
        let mut from = 0;
        let mut to = 0;
        let mut last = self.synced;
        while to < framed.len() {
            let (bytes, position) = record::framed(&framed[to..]);
            if self.at + (to - from + bytes) as u64 > self.bytes {
                // The next segment says that it follows this one, so this one has to be durable first.
                self.write(&framed[from..to], last)?;
                self.rotate(folder, position, bytes as u64)?;
                from = to;
            }
            record::seal(&mut framed[to..to + bytes], self.number, self.synced);
            to += bytes;
            last = position;
        }
        self.write(&framed[from..], last)?;
        if !self.asked_for_spare && self.at > self.bytes / 2 {
            self.asked_for_spare = true;
            self.ask_for_spare(folder);
        }
        Ok(())
    }

    fn write(&mut self, sealed: &[u8], last: u64) -> Result<()> {
        if sealed.is_empty() {
            return Ok(());
        }
        self.written = self.at + sealed.len() as u64;
        self.failed = true;
        self.file
            .write_all_at(sealed, self.at)
            .and_then(|()| self.file.sync_data())
            .doing("write the log", &self.path)?;
        self.failed = false;
        self.at = self.written;
        self.synced = last;
        Ok(())
    }

    fn rotate(&mut self, folder: &LogFolder, first: u64, record_bytes: u64) -> Result<()> {
        let bytes = (self.bytes * 2).min(folder.segment_bytes).max(record_bytes + SEGMENT_HEAD_BYTES as u64);
        let fresh = Self::start(folder, self.number + 1, first, self.synced, bytes)?;
        self.hand_over(folder);
        *self = fresh;
        Ok(())
    }

    fn hand_over(&self, folder: &LogFolder) {
        folder.kept().closed.push_back(Closed {
            path: self.path.clone(),
            last: self.synced,
            bytes: self.bytes,
            sound: !self.failed,
        });
    }

    fn ask_for_spare(&self, folder: &LogFolder) {
        let mut kept = folder.kept();
        let bytes = (self.bytes * 2).min(folder.segment_bytes);
        if kept.spares.iter().all(|spare| spare.bytes < bytes) {
            kept.wanted_bytes = Some(bytes);
            folder.wanted.notify_all();
        }
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
