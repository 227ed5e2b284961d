//! The batches of a damaged log: all that can be read, also behind what cannot.

use std::path::Path;

use byteview::ByteView;

use crate::store::{
    overlay::Overlay,
    record::{self, Record},
    replay::{follows, proves_damage},
    segment::{self, SEGMENT_HEAD_BYTES, SegmentHead},
};

/// Puts every batch after `from` into `log`. Gives the last position found.
pub(super) fn read(folder: &Path, from: u64, log: &mut Overlay, lost: &mut Vec<String>) -> u64 {
    let segments = match segment::list(folder) {
        Ok(segments) => segments,
        Err(error) => {
            lost.push(format!("the whole log: {error}"));
            return from;
        }
    };
    if segments.is_empty() {
        lost.push(format!("what was written after batch {from}: there is no log segment in {}", folder.display()));
    }
    let mut last = from;
    let mut bytes = Vec::new();
    for (at, (number, path)) in segments.iter().enumerate() {
        if let Err(error) = segment::read_whole(path, &mut bytes) {
            lost.push(format!("a log segment: {error}"));
            continue;
        }
        let head = SegmentHead::decode(&bytes).filter(|head| head.number == *number);
        let Some(head) = head else {
            lost.push(format!("the log segment {}: its head is not readable", path.display()));
            continue;
        };
        if head.follows > last {
            lost.push(format!("the batches {} to {}: no log segment has them", last + 1, head.follows));
        }
        // What a later segment does not follow was taken back, and must not come back here.
        let next = segments.get(at + 1).and_then(|(_, next)| follows(next).ok().flatten());
        let mut segment = Segment { bytes: &bytes, head, until: next.unwrap_or(u64::MAX), path };
        let found = segment.read(from, log, lost);
        last = last.max(head.follows).max(found);
    }
    last
}

struct Segment<'a> {
    bytes: &'a [u8],
    head: SegmentHead,
    until: u64,
    path: &'a Path,
}

impl Segment<'_> {
    fn read(&mut self, from: u64, log: &mut Overlay, lost: &mut Vec<String>) -> u64 {
        let (mut expected, mut offset) = (self.head.first, SEGMENT_HEAD_BYTES);
        let mut last = 0;
        while expected <= self.until {
            let record = match self.at(offset).filter(|record| record.position == expected) {
                Some(record) => record,
                // Nothing here was ever durable: the end, or what was refused.
                None if !proves_damage(self.bytes, offset, &self.head, expected) => break,
                None => {
                    let Some(record) = self.after(offset, expected) else { break };
                    let missing = record.position - 1;
                    lost.push(format!("the batches {expected} to {missing}: not readable in {}", self.path.display()));
                    record
                }
            };
            if record.position > from {
                log.apply(record.position, &ByteView::new(record.payload));
            }
            last = record.position;
            (expected, offset) = (record.position + 1, record.end);
        }
        last
    }

    fn at(&self, offset: usize) -> Option<Record<'_>> {
        record::read(self.bytes, offset, self.head.number)
    }

    /// The next record behind one that cannot be read.
    fn after(&self, offset: usize, missing: u64) -> Option<Record<'_>> {
        (offset..self.bytes.len())
            .step_by(8)
            .filter_map(|at| self.at(at))
            .find(|record| record.position > missing && record.position <= self.until)
    }
}
