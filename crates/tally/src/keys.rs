//! Keeps who accepts API keys up with those that are stored.
//!
//! A message that keys have changed may be lost, with a connection or with the server that had it to tell. So they are
//! read again now and then as well: whatever is lost, a key that was revoked is dead everywhere within a minute.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tally_core::rows::{ApiKey, Key, Row, Signers};
use tally_core::view::Wants;
use tally_engine::{Engine, Range};

use crate::{Error, Tally};

/// How often keys are read that nobody said have changed.
const READ_EVERY: Duration = Duration::from_secs(20);
/// How soon to try again what could not be read.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// Keys in the first page that is asked for; more are asked for all at once.
const PAGE_KEYS: usize = 10_000;

/// The keys that are accepted somewhere.
pub trait KeyRing: Send + Sync {
    /// How often a key was added or taken away other than by [`KeyRing::replace`].
    fn changes(&self) -> u64;

    /// Takes these keys for all, unless one was added or taken away since `changes`: then what was read is older than
    /// that, and nothing is done. Says whether it was.
    fn replace(&self, stored: &[(String, ApiKey)], changes: u64) -> bool;
}

/// Notices a panic. That it is not polled any more is nothing of note.
struct Noticing<'a>(&'a AtomicBool);

impl Drop for Noticing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl<E: Engine> Tally<E> {
    /// Has the ring take the keys as they are stored now. Says whether there are none.
    pub async fn read_keys(&self, ring: &impl KeyRing) -> Result<bool, Error> {
        loop {
            let changes = ring.changes();
            let stored = self.stored_keys().await?;
            if ring.replace(&stored, changes) {
                return Ok(stored.is_empty());
            }
        }
    }

    /// Keeps the ring up with the store for as long as it is polled. If it panics, [`Tally::has_ended_partly`] says so:
    /// keys that are revoked from then on would work here for ever.
    pub async fn follow_keys(&self, ring: &impl KeyRing) -> Infallible {
        let _noticing = Noticing(&self.inner.panicked);
        loop {
            tokio::select! {
                biased;
                () = self.inner.new_keys.notified() => {}
                () = tokio::time::sleep(self.inner.look_every.unwrap_or(READ_EVERY)) => {}
            }
            while let Err(error) = self.read_keys(ring).await {
                tracing::warn!(%error, "API keys could not be read; it is tried again");
                tokio::time::sleep(RETRY_EVERY).await;
            }
        }
    }

    /// The keys that sign admissions, as they are stored now.
    pub async fn signers(&self) -> Result<Signers, Error> {
        let found = self.inner.engine.load(&Wants::rows(vec![Key::Signers])).await?.rows.pop().flatten();
        Ok(found.and_then(Row::into_signers).unwrap_or_default())
    }

    async fn stored_keys(&self) -> Result<Vec<(String, ApiKey)>, Error> {
        let mut limit = PAGE_KEYS;
        let page = loop {
            let page = self.inner.engine.scan(&Range::API_KEYS, limit).await?;
            if !page.more {
                break page;
            }
            limit = limit.saturating_mul(4);
        };
        let keys = page.items.into_iter().filter_map(|(key, row)| {
            let Key::ApiKey(id) = key else { return None };
            Some((id, row.into_api_key()?))
        });
        Ok(keys.collect())
    }
}
