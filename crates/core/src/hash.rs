//! A stable fingerprint, for telling requests and lists apart; and a digest, where somebody might want two to meet.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// The first 128 bits of SHA-256: nobody finds two texts that share one.
pub fn digest(parts: &[&str]) -> [u64; 2] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize();
    let word = |from: usize| bytes[from..from + 8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    [word(0), word(8)]
}

/// The digest as text.
pub fn digest_text(parts: &[&str]) -> String {
    let [high, low] = digest(parts);
    format!("{high:016x}{low:016x}")
}

/// FNV-1a, 64 bits: the same on every machine and in every version.
pub fn fingerprint(parts: &[&[u8]]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        // The length goes in first, so that moving a byte between parts changes the result.
        for byte in (part.len() as u64).to_le_bytes().iter().chain(part.iter()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// CRC-16/XMODEM, of which a Cluster of Redis makes its slots.
pub fn crc16(bytes: impl IntoIterator<Item = u8>) -> u16 {
    static TABLE: LazyLock<[u16; 256]> = LazyLock::new(|| {
        std::array::from_fn(|byte| {
            (0..8).fold((byte as u16) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 })
        })
    });
    bytes.into_iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// How many slots there are.
pub const SLOTS: u16 = 16_384;

/// The slot in which a Cluster of Redis keeps what belongs to an id, when its keys have the id in braces: what counts ends
/// at a brace that closes, and what would be empty is kept from it by [`slot_escape`].
pub fn slot(id: &str) -> u16 {
    let counts = id.split_once('}').map_or(id, |(counts, _)| counts);
    crc16(slot_escape(id).bytes().chain(counts.bytes())) % SLOTS
}

/// What stands before an id in its braces. A tag that would be empty is none at all, so a brace that closes it at once is
/// kept off.
pub fn slot_escape(id: &str) -> &'static str {
    if id.is_empty() || id.starts_with(['}', '%']) { "%" } else { "" }
}
