//! A stable fingerprint, for telling requests and lists apart. Not for secrets.

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
