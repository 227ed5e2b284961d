//! API keys: made, shown once, stored as a hash, compared in constant time.
//!
//! A key is `tally_<id>_<secret>`. The id is public: it finds the stored key, names it in logs and
//! revokes it. The secret has 256 bits, so a plain SHA-256 of it cannot be guessed backwards; a slow
//! hash would only slow the server.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tally::core::rows::{ApiKey, Role};
use tally::core::time::Timestamp;

use super::Principal;

const PREFIX: &str = "tally_";
const ID_CHARS: usize = 12;
/// 62^43 is just above 2^256.
const SECRET_CHARS: usize = 43;
/// Without l, o, 0 and 1, which people confuse when they read an id to each other.
const ID_ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
const SECRET_ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Why a key cannot be made or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key of the environment could not be sent in a header.
    #[error("an admin key is one or more visible ASCII characters, without spaces")]
    BadAdminKey,
    /// The operating system gave no randomness.
    #[error("the system's random source failed: {0}")]
    Random(getrandom::Error),
}

/// A key that was just made: the only moment at which its secret is known.
pub struct NewKey {
    /// The public part, under which it is stored.
    pub id: String,
    /// What is stored.
    pub stored: ApiKey,
    /// What is handed to the person, once.
    pub token: String,
}

impl NewKey {
    /// Makes a key.
    pub fn generate(role: Role, name: &str, now: Timestamp) -> Result<Self, KeyError> {
        let id = random_text(ID_ALPHABET, ID_CHARS)?;
        let secret = random_text(SECRET_ALPHABET, SECRET_CHARS)?;
        let stored =
            ApiKey { hash: hex(&sha256(&secret)), role, name: name.to_owned(), created_at: now, revoked_at: None };
        Ok(NewKey { token: format!("{PREFIX}{id}_{secret}"), id, stored })
    }
}

/// Marks what is stored of a key that was made while authentication was off.
const OF_DEV: &str = "dev:";

/// The key as it is stored when anybody at all may have made it: good only where authentication is off.
pub fn of_dev(stored: ApiKey) -> ApiKey {
    ApiKey { hash: format!("{OF_DEV}{}", stored.hash), ..stored }
}

/// Whether it was made so.
pub fn is_of_dev(stored: &ApiKey) -> bool {
    stored.hash.starts_with(OF_DEV)
}

/// The two parts of a key that someone presents, or `None` if it does not have the form of one.
pub fn parse(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
    let whole = |text: &str, chars: usize, alphabet: &[u8]| {
        text.len() == chars && text.bytes().all(|byte| alphabet.contains(&byte))
    };
    (whole(id, ID_CHARS, ID_ALPHABET) && whole(secret, SECRET_CHARS, SECRET_ALPHABET)).then_some((id, secret))
}

/// The key of `TALLY_ADMIN_KEY`: any text, kept as a hash from the moment it arrives.
pub struct AdminKey {
    sha256: [u8; 32],
}

impl AdminKey {
    /// Takes any key that a header can carry. How long it should be is the user's choice.
    pub fn new(key: &str) -> Result<Self, KeyError> {
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::BadAdminKey);
        }
        Ok(AdminKey { sha256: sha256(key) })
    }

    /// Whether this is the key; takes the same time whether it is or not.
    pub fn verify(&self, presented: &str) -> bool {
        same(&self.sha256, &sha256(presented))
    }
}

/// The keys that are accepted now.
pub struct KeyRing {
    admin: Option<AdminKey>,
    /// Whether keys that were made with authentication off are accepted.
    dev: bool,
    // A std lock: held for a lookup, never across an await.
    keys: RwLock<Keys>,
}

#[derive(Default)]
struct Keys {
    accepted: HashMap<Arc<str>, Accepted>,
    /// Keys added or taken away one by one: what was read before the last of them is too old.
    changes: u64,
    are_all_of_dev: bool,
}

#[derive(Clone, Copy)]
struct Accepted {
    sha256: [u8; 32],
    role: Role,
    is_of_dev: bool,
}

impl KeyRing {
    /// A ring with only the key of the environment, if there is one.
    pub fn new(admin: Option<AdminKey>) -> Self {
        KeyRing { admin, dev: false, keys: RwLock::default() }
    }

    /// The same where authentication is off: keys that were made so are accepted.
    pub fn with_dev(self, dev: bool) -> Self {
        KeyRing { dev, ..self }
    }

    /// Adds a stored key, or takes it away if it was revoked.
    pub fn put(&self, id: &str, stored: &ApiKey) {
        let mut keys = self.write();
        keys.changes += 1;
        match self.accepted(stored) {
            Some(key) => keys.accepted.insert(id.into(), key),
            None => keys.accepted.remove(id),
        };
    }

    /// Takes a key away.
    pub fn remove(&self, id: &str) {
        let mut keys = self.write();
        keys.changes += 1;
        keys.accepted.remove(id);
    }

    fn accepted(&self, stored: &ApiKey) -> Option<Accepted> {
        if stored.revoked_at.is_some() {
            return None;
        }
        let hash = stored.hash.strip_prefix(OF_DEV).filter(|_| self.dev).unwrap_or(&stored.hash);
        Some(Accepted { sha256: unhex(hash)?, role: stored.role, is_of_dev: is_of_dev(stored) })
    }

    /// Whether an accepted key was made with authentication off.
    pub fn is_of_dev(&self, id: &str) -> bool {
        self.read().accepted.get(id).is_some_and(|key| key.is_of_dev)
    }

    /// Whether every stored key was made so, when they were read last: then a server that does not run so has none.
    pub fn are_all_of_dev(&self) -> bool {
        self.read().are_all_of_dev
    }

    /// Whether anyone could present a key that is accepted.
    pub fn is_empty(&self) -> bool {
        self.admin.is_none() && self.read().accepted.is_empty()
    }

    fn read(&self) -> RwLockReadGuard<'_, Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Keys> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose key this is, if it is anyone's.
    pub fn verify(&self, token: &str) -> Option<Principal> {
        if let Some((id, secret)) = parse(token) {
            let keys = self.read();
            if let Some((id, key)) = keys.accepted.get_key_value(id)
                && same(&key.sha256, &sha256(secret))
            {
                return Some(Principal::Key { id: Arc::clone(id), role: key.role });
            }
        }
        let admin = self.admin.as_ref()?;
        admin.verify(token).then(|| Principal::Key { id: "admin".into(), role: Role::Admin })
    }
}

/// Forgets every key but the environment's and takes those that are stored.
impl tally::KeyRing for KeyRing {
    fn changes(&self) -> u64 {
        self.read().changes
    }

    fn replace(&self, stored: &[(String, ApiKey)], changes: u64) -> bool {
        let fresh = stored.iter().filter_map(|(id, key)| Some((Arc::from(id.as_str()), self.accepted(key)?))).collect();
        let mut keys = self.write();
        if keys.changes != changes {
            return false;
        }
        keys.accepted = fresh;
        keys.are_all_of_dev = stored.iter().all(|(_, key)| is_of_dev(key));
        true
    }
}

/// The one place where secrets meet: in constant time.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.ct_eq(b).into()
}

pub(crate) fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Characters of the alphabet, each equally likely: a byte past the last whole multiple is thrown away.
fn random_text(alphabet: &[u8], chars: usize) -> Result<String, KeyError> {
    let fair = 256 - 256 % alphabet.len();
    let mut text = String::with_capacity(chars);
    let mut bytes = [0; 64];
    while text.len() < chars {
        getrandom::fill(&mut bytes).map_err(KeyError::Random)?;
        let picked = bytes.iter().filter(|byte| usize::from(**byte) < fair);
        text.extend(
            picked.map(|byte| char::from(alphabet[usize::from(*byte) % alphabet.len()])).take(chars - text.len()),
        );
    }
    Ok(text)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
