//! Tokens that were verified a moment ago, by their hash, so that a busy client does not cost a signature
//! check on every request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::jwt::User;

/// Longest time that a verified token is taken at its word.
pub(super) const KEPT_S_MAX: u64 = 60;
const TOKENS_MAX: usize = 4_096;

/// A bounded map of two halves: when the young half is full it becomes the old one, and what was old is
/// forgotten. Tokens in use move back to the young half, so this is nearly "least recently used" at the
/// cost of a lookup.
#[derive(Default)]
pub(super) struct TokenCache {
    // A std lock: held for a lookup, never across an await.
    halves: Mutex<Halves>,
}

#[derive(Default)]
struct Halves {
    young: HashMap<[u8; 32], Entry>,
    old: HashMap<[u8; 32], Entry>,
}

#[derive(Clone)]
struct Entry {
    user: Arc<User>,
    kept_until_s: u64,
    /// The key set that it was verified with; a key taken away takes its tokens along.
    keys_version: u64,
}

impl TokenCache {
    /// The user of a token that was verified lately with these very keys and has not expired.
    pub(super) fn get(&self, hash: &[u8; 32], keys_version: u64, now_s: u64) -> Option<Arc<User>> {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = halves.find(hash)?;
        (entry.keys_version == keys_version && now_s < entry.kept_until_s).then_some(entry.user)
    }

    /// Keeps a verified token, never past its own end.
    pub(super) fn put(&self, hash: [u8; 32], user: &Arc<User>, keys_version: u64, now_s: u64) {
        let kept_until_s = user.expires_s.min(now_s.saturating_add(KEPT_S_MAX));
        if kept_until_s > now_s {
            let entry = Entry { user: Arc::clone(user), kept_until_s, keys_version };
            self.halves.lock().unwrap_or_else(PoisonError::into_inner).insert(hash, entry);
        }
    }
}

impl Halves {
    fn find(&mut self, hash: &[u8; 32]) -> Option<Entry> {
        if let Some(entry) = self.young.get(hash) {
            return Some(entry.clone());
        }
        let entry = self.old.remove(hash)?;
        self.insert(*hash, entry.clone());
        Some(entry)
    }

    fn insert(&mut self, hash: [u8; 32], entry: Entry) {
        if self.young.len() >= TOKENS_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash, entry);
    }
}

#[cfg(test)]
mod tests {
    use tally::core::id::SubjectId;

    use super::*;

    const NOW: u64 = 1_000_000;

    fn user(expires_s: u64) -> Arc<User> {
        Arc::new(User { subject: SubjectId::new("alice").unwrap(), auth: Arc::default(), expires_s })
    }

    #[test]
    fn a_token_is_kept_for_a_moment_and_never_past_its_end() {
        let cases = [
            (NOW + 10, NOW, true),
            (NOW + 10, NOW + 9, true),
            (NOW + 10, NOW + 10, false),
            (NOW + 10_000, NOW + KEPT_S_MAX - 1, true),
            (NOW + 10_000, NOW + KEPT_S_MAX, false),
            (NOW, NOW, false),
            (NOW - 5, NOW, false),
        ];
        for (expires_s, at, kept) in cases {
            let cache = TokenCache::default();
            cache.put([1; 32], &user(expires_s), 7, NOW);
            assert_eq!(cache.get(&[1; 32], 7, at).is_some(), kept, "{expires_s} at {at}");
        }
    }

    #[test]
    fn changed_keys_forget_it() {
        let cache = TokenCache::default();
        cache.put([1; 32], &user(NOW + 10), 7, NOW);
        assert!(cache.get(&[1; 32], 8, NOW).is_none());
        assert!(cache.get(&[2; 32], 7, NOW).is_none());
    }

    #[test]
    fn it_stays_bounded_and_keeps_what_is_used() {
        let cache = TokenCache::default();
        let hash = |n: usize| {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&n.to_le_bytes());
            hash
        };
        for n in 0..5 * TOKENS_MAX {
            cache.put(hash(n), &user(NOW + 10), 7, NOW);
            assert!(cache.get(&hash(0), 7, NOW).is_some(), "the busy one is kept, {n}");
        }
        let halves = cache.halves.lock().unwrap();
        assert!(halves.young.len() + halves.old.len() <= TOKENS_MAX);
    }
}
