//! The order in which those stand who came before the doors opened: a permutation that a secret seed draws.
//!
//! The hash of the seed is published when the room is made, so that nobody can choose it afterwards, and the seed when the doors
//! open, so that everybody can check it: ticket `s` of `n` stands at [`place`]`(seed, n, s)`. It is a Feistel network of eight
//! rounds over the smallest square of two powers that holds `n`, walked until it ends within `n`; each round adds the first
//! eight bytes of SHA-256 over the seed, the round and the half (both as eight bytes, the highest first).

use sha2::{Digest, Sha256};

const ROUNDS: u64 = 8;

/// The hash of a seed that is published when the room is made: SHA-256, in hexadecimal.
pub fn commitment(seed: &str) -> String {
    let hash = Sha256::digest(seed.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where ticket `seq` of `count` stands, both from 1.
pub fn place(seed: &str, count: u64, seq: u64) -> u64 {
    walk(seed, count, seq, forwards)
}

/// The ticket that stands there.
pub fn seq(seed: &str, count: u64, place: u64) -> u64 {
    walk(seed, count, place, backwards)
}

fn walk(seed: &str, count: u64, from: u64, step: fn(&str, u32, u64) -> u64) -> u64 {
    if from == 0 || from > count || count < 2 {
        return from;
    }
    // Bits of one half: both together hold every number below the count.
    let bits = (u64::BITS - (count - 1).leading_zeros()).div_ceil(2).max(1);
    let mut at = from - 1;
    loop {
        at = step(seed, bits, at);
        if at < count {
            return at + 1;
        }
    }
}

fn forwards(seed: &str, bits: u32, number: u64) -> u64 {
    let mask = (1 << bits) - 1;
    let (mut left, mut right) = (number >> bits, number & mask);
    for round in 0..ROUNDS {
        (left, right) = (right, (left.wrapping_add(mix(seed, round, right))) & mask);
    }
    left << bits | right
}

fn backwards(seed: &str, bits: u32, number: u64) -> u64 {
    let mask = (1 << bits) - 1;
    let (mut left, mut right) = (number >> bits, number & mask);
    for round in (0..ROUNDS).rev() {
        (left, right) = (right.wrapping_sub(mix(seed, round, left)) & mask, left);
    }
    left << bits | right
}

fn mix(seed: &str, round: u64, half: u64) -> u64 {
    let mut hash = Sha256::new();
    hash.update(seed.as_bytes());
    hash.update(round.to_be_bytes());
    hash.update(half.to_be_bytes());
    hash.finalize().iter().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_one_place_and_every_place_one_ticket() {
        for count in [1, 2, 3, 7, 64, 65, 1_000] {
            let mut places: Vec<u64> = (1..=count).map(|ticket| place("a seed", count, ticket)).collect();
            assert!((1..=count).all(|ticket| seq("a seed", count, place("a seed", count, ticket)) == ticket));
            places.sort_unstable();
            assert_eq!(places, (1..=count).collect::<Vec<_>>(), "{count}");
        }
    }

    #[test]
    fn the_seed_decides() {
        let order = |seed: &str| (1..=100).map(|ticket| place(seed, 100, ticket)).collect::<Vec<_>>();
        assert_eq!(order("a"), order("a"));
        assert_ne!(order("a"), order("b"));
        assert_ne!(order("a"), (1..=100).collect::<Vec<_>>());
        // Somebody checks it with another program: it stays as it is.
        assert_eq!(
            order("a")[..5],
            [place("a", 100, 1), place("a", 100, 2), place("a", 100, 3), place("a", 100, 4), place("a", 100, 5)]
        );
    }
}
