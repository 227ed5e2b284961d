//! A stable fingerprint, for telling requests and lists apart; and a digest, where somebody might want two to meet.

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
