//! A batch of row changes, kept in the very bytes that go to the log.
//!
//! Each change is a varint of `key length * 2 + is_put`, the key, and for a put a varint of the value's
//! length and the value. Changes are absolute, so that reading a batch twice does no harm.

use byteview::ByteView;

use super::error::{Result, StoreError};

/// The longest key that the tables take.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// The largest batch, which bounds what a segment, a read of the log and one sync have to hold.
pub const BATCH_BYTES_MAX: usize = 128 << 20;

/// Buffers that were larger once are not kept.
pub(super) const BUFFER_BYTES_KEPT: usize = 16 << 20;

/// Puts and deletes that become visible and durable together. Later changes of one key win.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    bytes: Vec<u8>,
    rows: usize,
    bad_key: bool,
}

impl Batch {
    /// An empty batch. Reuse it with [`Batch::clear`]: it keeps its memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a row.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.key(key, 1);
        write_varint(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    /// Removes a row, whether it is there or not.
    pub fn delete(&mut self, key: &[u8]) {
        self.key(key, 0);
    }

    /// Empties the batch and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows = 0;
        self.bad_key = false;
    }

    /// Empties the batch, and lets go of memory that only a few batches need.
    pub(crate) fn shrink(&mut self) {
        self.clear();
        self.bytes.shrink_to(BUFFER_BYTES_KEPT);
    }

    /// How many changes it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether it holds no change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many bytes it takes in the log.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn key(&mut self, key: &[u8], is_put: u64) {
        // Refused when the batch is applied, so that building one never fails.
        self.bad_key |= key.first().is_none_or(|first| *first == 0) || key.len() > KEY_BYTES_MAX;
        write_varint(&mut self.bytes, (key.len() as u64) << 1 | is_put);
        self.bytes.extend_from_slice(key);
        self.rows += 1;
    }

    /// The bytes for the log, once the limits hold.
    pub(super) fn payload(&self, bytes_max: usize) -> Result<&[u8]> {
        if self.bad_key {
            return Err(StoreError::BadKey);
        }
        let max = bytes_max.min(BATCH_BYTES_MAX);
        if self.bytes.len() > max {
            return Err(StoreError::BatchTooLarge { bytes: self.bytes.len(), max });
        }
        Ok(&self.bytes)
    }
}

/// The changes of a payload, as views into it that share its memory. `None` is a delete.
pub(super) struct Changes<'a> {
    payload: &'a ByteView,
    at: usize,
}

impl<'a> Changes<'a> {
    pub(super) fn of(payload: &'a ByteView) -> Self {
        Self { payload, at: 0 }
    }

    fn take(&mut self, bytes: usize) -> Option<ByteView> {
        let end = self.at.checked_add(bytes)?;
        (end <= self.payload.len()).then(|| {
            let view = self.payload.slice(self.at..end);
            self.at = end;
            view
        })
    }

    fn varint(&mut self) -> Option<u64> {
        let (value, bytes) = read_varint(self.payload.get(self.at..)?)?;
        self.at += bytes;
        Some(value)
    }
}

impl Iterator for Changes<'_> {
    type Item = (ByteView, Option<ByteView>);

    fn next(&mut self) -> Option<Self::Item> {
        let head = self.varint()?;
        let key = self.take(usize::try_from(head >> 1).ok()?)?;
        if head & 1 == 0 {
            return Some((key, None));
        }
        let bytes = self.varint()?;
        let value = self.take(usize::try_from(bytes).ok()?)?;
        Some((key, Some(value)))
    }
}

fn write_varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

fn read_varint(from: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (at, byte) in from.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_as_they_went_in() {
        let long = vec![7; 70_000];
        let mut batch = Batch::new();
        batch.put(b"a", b"");
        batch.delete(b"b");
        batch.put(&[9; 300], &long);
        let payload = ByteView::new(batch.payload(BATCH_BYTES_MAX).unwrap());
        let read: Vec<_> = Changes::of(&payload).collect();
        assert_eq!(read.len(), batch.len());
        assert_eq!((&*read[0].0, read[0].1.as_deref()), (&b"a"[..], Some(&b""[..])));
        assert_eq!((&*read[1].0, read[1].1.as_deref()), (&b"b"[..], None));
        assert_eq!(read[2].1.as_deref(), Some(&long[..]));
    }

    #[test]
    fn cut_payloads_end_early_and_never_panic() {
        let mut batch = Batch::new();
        batch.put(&[3; 200], &[4; 200]);
        let whole = batch.payload(BATCH_BYTES_MAX).unwrap();
        for cut in 0..whole.len() {
            assert_eq!(Changes::of(&ByteView::new(&whole[..cut])).count(), 0);
        }
    }

    #[test]
    fn keys_that_the_store_keeps_for_itself_are_refused() {
        for key in [&b""[..], b"\0x", &[1; KEY_BYTES_MAX + 1]] {
            let mut batch = Batch::new();
            batch.put(key, b"v");
            assert!(matches!(batch.payload(BATCH_BYTES_MAX), Err(StoreError::BadKey)));
            batch.clear();
            assert!(batch.payload(BATCH_BYTES_MAX).is_ok());
        }
    }
}
