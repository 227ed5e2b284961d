//! Segment files: zero-filled before they are used, so that a sync moves data only and no file metadata.

use std::{
    fs::{self, File, OpenOptions},
    io::Read,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    error::{Doing, Result},
    record::{u32_at, u64_at},
};

/// Bytes before the first record.
pub(super) const SEGMENT_HEAD_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"TALLYLOG";

/// What a segment says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHead {
    /// Counts up for ever; also in the name of the file.
    pub(super) number: u64,
    /// Position of its first record.
    pub(super) first: u64,
    /// The last position before it that counts. Whatever an earlier segment holds after that was taken
    /// back, which is how the log is cut without writing to a file that may be failing.
    pub(super) follows: u64,
}

impl SegmentHead {
    fn encode(self) -> [u8; SEGMENT_HEAD_BYTES] {
        let mut bytes = [0; SEGMENT_HEAD_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.follows.to_le_bytes());
        let crc = crc32fast::hash(&bytes);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let head = Self { number: u64_at(bytes, 16)?, first: u64_at(bytes, 24)?, follows: u64_at(bytes, 32)? };
        u32_at(bytes, 8)?;
        (bytes.get(..SEGMENT_HEAD_BYTES)? == head.encode()).then_some(head)
    }

    /// Writes the head durably.
    pub(super) fn write(self, file: &File, path: &Path) -> Result<()> {
        file.write_all_at(&self.encode(), 0).and_then(|()| file.sync_data()).doing("start a log segment in", path)
    }
}

/// The file name of a segment.
pub(super) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}.log"))
}

/// The segments of a folder, oldest first.
pub(super) fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).doing("list", folder)? {
        let path = entry.doing("list", folder)?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".log")?.parse().ok());
        if let Some(number) = number {
            found.push((number, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Reads a whole segment into `into`.
pub(super) fn read_whole(path: &Path, into: &mut Vec<u8>) -> Result<()> {
    into.clear();
    File::open(path)
        .and_then(|mut file| {
            into.reserve(usize::try_from(file.metadata()?.len()).unwrap_or(0));
            file.read_to_end(into)
        })
        .map(drop)
        .doing("read", path)
}

/// Creates a file of zeros that are really on disk. Leaves nothing behind when it fails.
pub(super) fn create_zeroed(path: &Path, bytes: u64) -> Result<File> {
    let fill = || {
        let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).mode(0o600).open(path)?;
        let zeros = vec![0; 1 << 20];
        let mut at = 0;
        while at < bytes {
            let step = (bytes - at).min(zeros.len() as u64);
            file.write_all_at(&zeros[..step as usize], at)?;
            at += step;
        }
        file.sync_all()?;
        Ok(file)
    };
    fill().inspect_err(|_| drop(fs::remove_file(path))).doing("reserve space for the log in", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_back_and_every_flipped_bit_is_noticed() {
        let head = SegmentHead { number: 7, first: 40, follows: 38 };
        let bytes = head.encode();
        assert_eq!(SegmentHead::decode(&bytes), Some(head));
        for at in 0..bytes.len() {
            let mut flipped = bytes;
            flipped[at] ^= 4;
            assert_eq!(SegmentHead::decode(&flipped), None, "byte {at}");
        }
        assert_eq!(SegmentHead::decode(&bytes[..63]), None);
    }
}
