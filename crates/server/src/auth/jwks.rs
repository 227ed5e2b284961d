//! Where users' keys come from: a file that is read again when it changes, or a URL that is fetched again
//! as it asks for.
//!
//! A refresh storm is impossible: fetches happen one at a time, in the background by the clock, and
//! besides that at most once in [`UNKNOWN_KID_EVERY`] however many tokens name keys that nobody knows. A
//! failing refresh keeps the keys that there are.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{CACHE_CONTROL, HeaderMap};
use tally_settings::is_url;

pub use super::key_set::{JwksError, Key, KeySet};
use crate::tls::install_crypto;

/// How often an unknown key may cause a fetch, over all requests.
pub const UNKNOWN_KID_EVERY: Duration = Duration::from_secs(30);
/// How often a file is looked at.
pub const FILE_CHECK_EVERY: Duration = Duration::from_secs(2);
pub(super) const REFRESH_MIN: Duration = Duration::from_secs(60);
const REFRESH_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// For a server that does not say how long its answer is good.
const REFRESH_DEFAULT: Duration = Duration::from_secs(10 * 60);
/// While there are no keys at all, nobody can sign in, so ask often.
pub(super) const RETRY_WITHOUT_KEYS: Duration = Duration::from_secs(5);
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// The keys in force, kept up with their source.
pub struct Jwks {
    source: Source,
    // A std lock: held for a pointer's copy, never across an await.
    current: RwLock<Option<Arc<KeySet>>>,
    /// Held through a fetch, so that there is never more than one; guards when an unknown key last asked.
    flight: tokio::sync::Mutex<Option<Instant>>,
    refresher: Mutex<Option<tokio::task::AbortHandle>>,
}

enum Source {
    File { path: PathBuf, seen: Mutex<Seen> },
    Url { url: String, client: reqwest::Client },
}

struct Seen {
    looked_at: Instant,
    stamp: Option<Stamp>,
}

/// What changes when a file is written.
type Stamp = (SystemTime, u64);

impl Jwks {
    /// Opens a file or a URL. A wrong file is an error; a URL that does not answer is asked again.
    pub async fn open(jwks: &str) -> Result<Arc<Self>, JwksError> {
        if is_url(jwks) { Self::open_url(jwks).await } else { Self::open_file(Path::new(jwks)) }
    }

    fn open_file(path: &Path) -> Result<Arc<Self>, JwksError> {
        let stamp = stamp(path);
        let set = KeySet::read(path)?;
        let seen = Mutex::new(Seen { looked_at: Instant::now(), stamp });
        Ok(Self::new(Source::File { path: path.to_path_buf(), seen }, Some(set)))
    }

    async fn open_url(url: &str) -> Result<Arc<Self>, JwksError> {
        install_crypto();
        let client = reqwest::Client::builder()
            .timeout(FETCH_TIMEOUT)
            .redirect(reqwest::redirect::Policy::limited(3))
            .build()
            .map_err(unfetched)?;
        let jwks = Self::new(Source::Url { url: url.to_owned(), client }, None);
        let first = jwks.refresh().await;
        let task = tokio::spawn(keep_fresh(Arc::downgrade(&jwks), first));
        *jwks.refresher.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
        Ok(jwks)
    }

    fn new(source: Source, set: Option<KeySet>) -> Arc<Self> {
        Arc::new(Jwks {
            source,
            current: RwLock::new(set.map(Arc::new)),
            flight: tokio::sync::Mutex::new(None),
            refresher: Mutex::new(None),
        })
    }

    /// The keys in force, after a look at the file if it is time for one.
    pub fn current(&self, now: Instant) -> Option<Arc<KeySet>> {
        self.look_at_file(now);
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The keys in force for a token whose key is not among them: fetched anew, unless that was done
    /// lately.
    pub async fn current_for_unknown_kid(self: &Arc<Self>, now: Instant) -> Option<Arc<KeySet>> {
        if matches!(self.source, Source::Url { .. }) {
            // Everyone who arrives meanwhile waits here, and then finds that it was done lately.
            let mut asked = self.flight.lock().await;
            if asked.is_none_or(|at| now.saturating_duration_since(at) >= UNKNOWN_KID_EVERY) {
                *asked = Some(now);
                // A task of its own, so that a client that hangs up does not waste the one attempt.
                let jwks = Arc::clone(self);
                let fetch = tokio::spawn(async move { jwks.fetch_and_install().await });
                if let Ok(Err(error)) = fetch.await {
                    tracing::warn!(%error, "the users' key set could not be refreshed; the old keys stay");
                }
            }
        }
        self.current(now)
    }

    /// Fetches the keys now, and says when to do so again.
    pub(super) async fn refresh(&self) -> Duration {
        let _one_at_a_time = self.flight.lock().await;
        match self.fetch_and_install().await {
            Ok(again) => again,
            Err(error) => {
                let have = self.current(Instant::now()).is_some();
                tracing::warn!(%error, have_old_keys = have, "the users' key set could not be refreshed");
                if have { REFRESH_MIN } else { RETRY_WITHOUT_KEYS }
            }
        }
    }

    async fn fetch_and_install(&self) -> Result<Duration, JwksError> {
        let Source::Url { url, client } = &self.source else { return Ok(REFRESH_MAX) };
        let response = client.get(url).send().await.and_then(|response| response.error_for_status());
        let mut response = response.map_err(unfetched)?;
        let again = refresh_after(response.headers());
        let mut json = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unfetched)? {
            json.extend_from_slice(&chunk);
            if json.len() > DOCUMENT_BYTES_MAX {
                return Err(JwksError::Malformed(format!("more than {DOCUMENT_BYTES_MAX} bytes")));
            }
        }
        self.install(KeySet::parse(&json)?);
        Ok(again)
    }

    fn install(&self, set: KeySet) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(set));
    }

    /// Reads the file again if it has changed. A small local file every few seconds is not worth a thread.
    fn look_at_file(&self, now: Instant) {
        let Source::File { path, seen } = &self.source else { return };
        // Someone else is looking already.
        let Ok(mut seen) = seen.try_lock() else { return };
        if now.saturating_duration_since(seen.looked_at) < FILE_CHECK_EVERY {
            return;
        }
        seen.looked_at = now;
        let stamp = stamp(path);
        if stamp == seen.stamp {
            return;
        }
        seen.stamp = stamp;
        match KeySet::read(path) {
            Ok(set) => self.install(set),
            Err(error) => tracing::warn!(%error, "the users' key set has changed and is wrong; the old keys stay"),
        }
    }
}

impl Drop for Jwks {
    fn drop(&mut self) {
        if let Some(task) = self.refresher.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

async fn keep_fresh(jwks: Weak<Jwks>, mut again: Duration) {
    loop {
        tokio::time::sleep(again).await;
        let Some(jwks) = jwks.upgrade() else { return };
        again = jwks.refresh().await;
    }
}

/// How long an answer is good, kept within reason.
fn refresh_after(headers: &HeaderMap) -> Duration {
    let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let max_age = directives.flat_map(|value| value.split(',')).find_map(|directive| {
        let (name, seconds) = directive.split_once('=')?;
        let named = name.trim().eq_ignore_ascii_case("max-age");
        named.then(|| seconds.trim().trim_matches('"').parse().ok()).flatten()
    });
    max_age.map_or(REFRESH_DEFAULT, Duration::from_secs).clamp(REFRESH_MIN, REFRESH_MAX)
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Without the URL, which may carry a secret in its query.
fn unfetched(error: reqwest::Error) -> JwksError {
    let error = error.without_url();
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    JwksError::Unfetched(format!("{error}{cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_when_to_ask_again_within_bounds() {
        let cases = [
            (None, REFRESH_DEFAULT),
            (Some("public, max-age=19845, must-revalidate"), Duration::from_secs(19_845)),
            (Some("MAX-AGE = \"120\""), Duration::from_secs(120)),
            (Some("max-age=0"), REFRESH_MIN),
            (Some("max-age=99999999"), REFRESH_MAX),
            (Some("max-age=-1"), REFRESH_DEFAULT),
            (Some("s-maxage=600"), REFRESH_DEFAULT),
            (Some("no-store"), REFRESH_DEFAULT),
        ];
        for (header, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.extend(header.map(|text| (CACHE_CONTROL, text.parse().unwrap())));
            assert_eq!(refresh_after(&headers), expected, "{header:?}");
        }
    }
}
