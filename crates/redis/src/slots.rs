//! Slots: what a Cluster keeps on one node, and what one script may touch.

use std::sync::LazyLock;

use tally_core::hash::crc16;

pub(crate) use tally_core::hash::{SLOTS, slot_escape};

/// The slot of a key: of what stands between its first braces, or of all of it.
pub(crate) fn slot_of(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    crc16(tag.filter(|tag| !tag.is_empty()).unwrap_or(key).bytes()) % SLOTS
}

/// A short text for every slot that lies in it, for keys that belong to a slot rather than to an id.
pub(crate) fn tag(slot: u16) -> &'static str {
    static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut tags = vec![String::new(); usize::from(SLOTS)];
        let mut missing = tags.len();
        for number in 0_u64.. {
            let text = format!("{number:x}");
            let tag = &mut tags[usize::from(crc16(text.bytes()) % SLOTS)];
            if tag.is_empty() {
                *tag = text;
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
        }
        tags
    });
    &TAGS[usize::from(slot)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // As `CLUSTER KEYSLOT` answers.
        for (key, slot) in [
            ("123456789", 12_739),
            ("foo", 12_182),
            ("{foo}bar", 12_182),
            ("a{}foo", 16_292),
            ("{}x", 10_595),
            ("tally:o:{post:42}:like", 14_478),
        ] {
            assert_eq!(slot_of(key), slot, "{key}");
        }
    }

    #[test]
    fn every_slot_has_a_tag_of_its_own() {
        for slot in 0..SLOTS {
            assert_eq!(slot_of(&format!("tally:i:{{{}}}", tag(slot))), slot);
        }
    }
}
