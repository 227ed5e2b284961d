//! Reads the log back: every batch up to the last moment that is whole.
//!
//! After a crash the end of the newest segment is torn, which is normal: nothing there was answered. What
//! was answered is known to be durable by something later, a record or the head of the next segment. If
//! such a batch cannot be read, that is damage, and opening is refused rather than going on without it.

use std::path::{Path, PathBuf};

use super::{
    error::{Result, StoreError},
    record::{self, RECORD_HEAD_BYTES, Record},
    segment::{self, SEGMENT_HEAD_BYTES, SegmentHead},
};

/// What reading the log found.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    /// The last position that counts.
    pub(super) last: u64,
    /// The largest segment number there is, readable or not.
    pub(super) newest: u64,
    /// Every segment, oldest first, with the last position that it holds.
    pub(super) segments: Vec<Replay>,
    /// How many batches and bytes were read, for `check`.
    pub(super) batches: u64,
    pub(super) bytes: u64,
    /// What the newest segment ends with and nothing proves to be durable.
    pub(super) tail: Option<Tail>,
}

/// Records that were read, and may be in the system's memory alone: whoever wrote them was killed before the sync.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    at: u64,
    bytes: Vec<u8>,
}

impl Tail {
    /// Makes them durable. They are written again, because a sync that failed once may have made the system forget
    /// that they were never written.
    pub(super) fn secure(&self) -> Result<()> {
        use super::error::Doing;
        use std::os::unix::fs::FileExt;

        std::fs::OpenOptions::new()
            .write(true)
            .open(&self.path)
            .and_then(|file| file.write_all_at(&self.bytes, self.at).and_then(|()| file.sync_data()))
            .doing("make the end of the log durable in", &self.path)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Replay {
    pub(super) path: PathBuf,
    pub(super) last: u64,
}

/// Hands every batch after `from` and up to `to` to `each`, in order, up to the first damage. `from` is where the
/// tables end: the log may begin earlier, but not later.
pub(super) fn replay(
    folder: &Path,
    from: u64,
    to: u64,
    mut each: impl FnMut(u64, &[u8]),
) -> Result<(Replayed, Option<StoreError>)> {
    let paths = segment::list(folder)?;
    let mut bytes = Vec::new();
    let mut found = Replayed { newest: paths.last().map_or(0, |(number, _)| *number), ..Replayed::default() };

    for (at, (number, path)) in paths.iter().enumerate() {
        let damage = |why: String| StoreError::damaged(path, why);
        segment::read_whole(path, &mut bytes)?;
        let Some(head) = SegmentHead::decode(&bytes).filter(|head| head.number == *number) else {
            return Ok((found, Some(damage("its head is not readable".into()))));
        };
        // What the tables already hold is not missed.
        if found.last.max(from) < head.follows {
            let why = format!("the batches {} to {} before it are missing", found.last.max(from) + 1, head.follows);
            return Ok((found, Some(damage(why))));
        }
        let until = match paths.get(at + 1) {
            Some((_, next)) => follows(next)?.unwrap_or(u64::MAX),
            None => u64::MAX,
        };

        let mut expected = head.first;
        let mut offset = SEGMENT_HEAD_BYTES;
        let mut last = head.follows;
        let mut proven = head.follows;
        let mut starts = Vec::new();
        while let Some(record) = read_at(&bytes, offset, &head, expected) {
            if record.position > until {
                break;
            }
            if record.position > from && record.position <= to {
                each(record.position, record.payload);
            }
            last = record.position;
            proven = proven.max(record.durable);
            starts.push((record.position, offset));
            found.batches += 1;
            found.bytes += record.payload.len() as u64;
            expected += 1;
            offset = record.end;
        }
        found.last = last;
        found.segments.push(Replay { path: path.clone(), last });
        if expected <= until && proves_damage(&bytes, offset, &head, expected) {
            let why = format!("batch {expected} was durable and is not readable");
            return Ok((found, Some(damage(why))));
        }
        // Of any other segment the head of the next one says how far it is durable.
        let unproven = starts.iter().find(|(position, _)| *position > proven).filter(|_| at + 1 == paths.len());
        found.tail = unproven.map(|(_, start)| Tail {
            path: path.clone(),
            at: *start as u64,
            bytes: bytes[*start..offset.min(bytes.len())].to_vec(),
        });
    }
    Ok((found, None))
}

fn read_at<'a>(bytes: &'a [u8], at: usize, head: &SegmentHead, expected: u64) -> Option<Record<'a>> {
    record::read(bytes, at, head.number).filter(|record| record.position == expected)
}

/// Whether anything after a record that cannot be read says that it was durable.
pub(super) fn proves_damage(bytes: &[u8], from: usize, head: &SegmentHead, missing: u64) -> bool {
    let positions_max = missing + (bytes.len() / RECORD_HEAD_BYTES) as u64;
    // Rows and old records lie around here too. Only what can be such a record is worth a checksum, or
    // opening would take minutes.
    let plausible = |at: &usize| {
        let (position, durable) = (record::u64_at(bytes, at + 8), record::u64_at(bytes, at + 16));
        position
            .zip(durable)
            .is_some_and(|(position, durable)| missing <= durable && durable < position && position <= positions_max)
    };
    let places = (from..bytes.len().saturating_sub(RECORD_HEAD_BYTES)).step_by(8);
    places
        .filter(plausible)
        .any(|at| record::read(bytes, at, head.number).is_some_and(|found| found.durable >= missing))
}

/// The `follows` of a segment, if its head is readable.
pub(super) fn follows(path: &Path) -> Result<Option<u64>> {
    use super::error::Doing;
    use std::io::Read;

    let mut head = Vec::with_capacity(SEGMENT_HEAD_BYTES);
    std::fs::File::open(path)
        .and_then(|file| file.take(SEGMENT_HEAD_BYTES as u64).read_to_end(&mut head))
        .doing("read", path)?;
    Ok(SegmentHead::decode(&head).map(|head| head.follows))
}
