//! One record of the log: one batch.
//!
//! ```text
//! length u32 | crc u32 | position u64 | durable u64 | payload | zeros up to 8 bytes
//! ```
//! The CRC also covers the number of the segment, so that what an earlier use of the file left behind is
//! never taken for a record. `durable` is what was durable when this record was written. It tells a torn
//! tail (normal after a crash) from damage: a record that a later one calls durable must be readable.

/// Bytes before the payload.
pub(super) const RECORD_HEAD_BYTES: usize = 24;

/// A record found in a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) position: u64,
    pub(super) durable: u64,
    pub(super) payload: &'a [u8],
    /// Where the next record starts.
    pub(super) end: usize,
}

/// How many bytes of a segment a payload takes.
pub(super) fn record_bytes(payload_bytes: usize) -> usize {
    (RECORD_HEAD_BYTES + payload_bytes).next_multiple_of(8)
}

/// Appends a record that is not sealed yet: which segment it lands in is not known here.
pub(super) fn frame(into: &mut Vec<u8>, position: u64, payload: &[u8]) {
    let end = into.len() + record_bytes(payload.len());
    into.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    into.extend_from_slice(&[0; 4]);
    into.extend_from_slice(&position.to_le_bytes());
    into.extend_from_slice(&[0; 8]);
    into.extend_from_slice(payload);
    into.resize(end, 0);
}

/// Length on disk and position of the unsealed record at the start of `framed`.
pub(super) fn framed(framed: &[u8]) -> (usize, u64) {
    let payload_bytes = u32_at(framed, 0).expect("a framed record has a whole head") as usize;
    let position = u64_at(framed, 8).expect("a framed record has a whole head");
    (record_bytes(payload_bytes), position)
}

/// Fills in what only the writer of the segment knows.
pub(super) fn seal(record: &mut [u8], segment: u64, durable: u64) {
    record[16..24].copy_from_slice(&durable.to_le_bytes());
    let payload_end = RECORD_HEAD_BYTES + u32_at(record, 0).expect("a framed record has a whole head") as usize;
    let crc = checksum(&record[..payload_end], segment);
    record[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// The record at `at`, if a whole and unaltered one of this segment stands there.
pub(super) fn read(bytes: &[u8], at: usize, segment: u64) -> Option<Record<'_>> {
    let payload_bytes = u32_at(bytes, at)? as usize;
    let position = u64_at(bytes, at + 8)?;
    if position == 0 {
        return None;
    }
    let payload_end = at.checked_add(RECORD_HEAD_BYTES)?.checked_add(payload_bytes)?;
    let record = bytes.get(at..payload_end)?;
    (checksum(record, segment) == u32_at(bytes, at + 4)?).then(|| Record {
        position,
        durable: u64_at(bytes, at + 16).expect("inside the record"),
        payload: &record[RECORD_HEAD_BYTES..],
        end: at + record_bytes(payload_bytes),
    })
}

fn checksum(record: &[u8], segment: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&segment.to_le_bytes());
    hasher.update(&record[..4]);
    hasher.update(&record[8..]);
    hasher.finalize()
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(position: u64, payload: &[u8], segment: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame(&mut bytes, position, payload);
        seal(&mut bytes, segment, position - 1);
        bytes
    }

    #[test]
    fn a_record_is_read_back_only_in_its_own_segment() {
        let bytes = sealed(5, b"hello", 3);
        let record = read(&bytes, 0, 3).unwrap();
        assert_eq!((record.position, record.durable, record.payload), (5, 4, &b"hello"[..]));
        assert_eq!(record.end, bytes.len());
        assert!(read(&bytes, 0, 4).is_none());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = sealed(1, b"some payload", 1);
        let payload_end = RECORD_HEAD_BYTES + b"some payload".len();
        for at in 0..payload_end {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(read(&flipped, 0, 1).is_none(), "byte {at} bit {bit}");
            }
            assert!(read(&bytes[..at], 0, 1).is_none());
        }
    }
}
