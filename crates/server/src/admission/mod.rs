//! Admissions: what somebody shows who was let into a room. Each is a token that anybody can check offline with the public keys.
//!
//! `signing.rs` makes and opens keys, `token.rs` is what is signed, `held.rs` remembers for a moment who is inside. This file keeps
//! the keys up with the store.

pub mod held;
pub mod signing;
pub mod token;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tally::core::Timestamp;
use tally::core::command::PutSigner;
use tally::core::rows::{ApiKey, Signers};
use tally::{KeyRing, Tally};
use tally_settings::AdmissionSettings;

use self::held::Held;
use self::signing::{KeyFileError, SealKey, SigningKey};
use crate::app::App;

/// How often the keys are looked for at most because of a token with a key that nobody knows.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What admissions are signed and checked with.
pub struct Admission {
    /// The key of the file, where there is one.
    file: Option<Arc<SigningKey>>,
    seal: Option<SealKey>,
    // A std lock: held for a look, never across an await.
    known: RwLock<Known>,
    /// Whether there may be other keys in the store than are known.
    is_stale: AtomicBool,
    /// Who is inside.
    pub held: Held,
}

#[derive(Default)]
struct Known {
    keys: Arc<Vec<Arc<SigningKey>>>,
    read_at: Option<Instant>,
}

/// Why there is no key to sign with.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] tally::Error),
    /// No key could be made or opened.
    #[error("{0}")]
    Key(String),
}

impl Admission {
    /// As it is set up.
    pub fn new(settings: &AdmissionSettings) -> Result<Self, KeyFileError> {
        let file = settings.signing_key_file.as_deref().map(SigningKey::from_file).transpose()?;
        let seal = settings.seal_key_file.as_deref().map(SealKey::from_file).transpose()?;
        Ok(Self {
            file: file.map(Arc::new),
            seal,
            known: RwLock::default(),
            is_stale: AtomicBool::new(true),
            held: Held::default(),
        })
    }

    /// Whether the key is a file, which nobody replaces but who put it there.
    pub fn is_of_file(&self) -> bool {
        self.file.is_some()
    }

    /// What is known may be old.
    fn expire(&self) {
        self.is_stale.store(true, Ordering::Release);
    }

    /// Every key that there is; the first one is made when it is first needed.
    async fn keys(&self, tally: &Tally) -> Result<Arc<Vec<Arc<SigningKey>>>, AdmissionError> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).keys.clone();
        let has_any = self.file.is_some() || !known.is_empty();
        if !self.is_stale.swap(false, Ordering::AcqRel) && has_any {
            return Ok(known);
        }
        match self.read(tally).await {
            Ok(keys) => Ok(keys),
            Err(error) => {
                self.expire();
                // What was right a moment ago still signs.
                if has_any { Ok(known) } else { Err(error) }
            }
        }
    }

    async fn read(&self, tally: &Tally) -> Result<Arc<Vec<Arc<SigningKey>>>, AdmissionError> {
        let mut stored = tally.signers().await?;
        if stored.items.is_empty() && self.file.is_none() {
            self.put(tally, None, false).await?;
            stored = tally.signers().await?;
        }
        let keys = self.opened(&stored)?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *known = Known { keys: Arc::new(keys), read_at: Some(Instant::now()) };
        Ok(known.keys.clone())
    }

    fn opened(&self, stored: &Signers) -> Result<Vec<Arc<SigningKey>>, AdmissionError> {
        let open = |signer| SigningKey::open(signer, self.seal.as_ref()).map(Arc::new).map_err(AdmissionError::Key);
        stored.items.iter().map(open).collect()
    }

    async fn put(&self, tally: &Tally, after: Option<String>, at_once: bool) -> Result<bool, AdmissionError> {
        let signer = SigningKey::generate(self.seal.as_ref()).map_err(AdmissionError::Key)?;
        let done = tally.ask(PutSigner { signer, after, at_once }).await?;
        self.expire();
        Ok(done.changed)
    }

    /// The key that signs what begins at this time: the same on every server, so that an admission has the same text however
    /// often it is asked for.
    pub async fn signing(&self, tally: &Tally, since: Timestamp) -> Result<Arc<SigningKey>, AdmissionError> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let keys = self.keys(tally).await?;
        let begun = keys.iter().rev().find(|key| key.signs_from <= since);
        begun.or(keys.first()).cloned().ok_or_else(|| AdmissionError::Key("there is no key".into()))
    }

    /// The key of this name. One that nobody knows may have been made elsewhere just now.
    pub async fn key(&self, tally: &Tally, kid: &str) -> Result<Option<Arc<SigningKey>>, AdmissionError> {
        let find = |keys: &[Arc<SigningKey>]| keys.iter().chain(&self.file).find(|key| key.kid == kid).cloned();
        if let Some(found) = find(&self.keys(tally).await?) {
            return Ok(Some(found));
        }
        let read_at = self.known.read().unwrap_or_else(PoisonError::into_inner).read_at;
        if read_at.is_some_and(|at| at.elapsed() < LOOK_AGAIN) {
            return Ok(None);
        }
        self.expire();
        Ok(find(&self.keys(tally).await?))
    }

    /// The public keys, as a JSON Web Key Set.
    pub async fn key_set(&self, tally: &Tally) -> Result<Value, AdmissionError> {
        let keys = self.keys(tally).await?;
        let shown: Vec<Value> = self.file.iter().chain(keys.iter()).map(|key| key.public_jwk()).collect();
        Ok(json!({"keys": shown}))
    }

    /// Makes another key. It signs once everybody has had the time to see it, or at once, when the older ones are to be worth
    /// nothing from now on.
    pub async fn rotate(&self, tally: &Tally, at_once: bool) -> Result<(), AdmissionError> {
        // One that somebody else made meanwhile is as good.
        let newest = tally.signers().await?.items.last().map(|signer| signer.kid.clone());
        self.put(tally, newest, at_once).await?;
        Ok(())
    }
}

/// Who accepts API keys and who signs admissions: both look at what is stored when keys have changed, and now and then.
pub struct Both<'a>(pub &'a App);

impl KeyRing for Both<'_> {
    fn changes(&self) -> u64 {
        self.0.auth.keys.changes()
    }

    fn replace(&self, stored: &[(String, ApiKey)], changes: u64) -> bool {
        self.0.admission.expire();
        self.0.auth.keys.replace(stored, changes)
    }
}
