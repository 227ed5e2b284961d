//! A server, and who asks it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Method, Url};

use crate::call::Call;
use crate::error::{Error, root};
use crate::trust;

/// Where a server listens when nobody says otherwise.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7700";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The server gives up before this by itself, and says why.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A server and who asks it. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    base: Url,
    key: Option<String>,
    answer_timeout: Duration,
}

impl std::fmt::Debug for Inner {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// What a [`Client`] is made from.
#[derive(Clone)]
#[must_use]
pub struct Builder {
    url: String,
    key: Option<String>,
    ca: Option<PathBuf>,
    connect_timeout: Duration,
    answer_timeout: Duration,
}

impl Builder {
    /// An API key, or a user's token. Default: none, which is enough where authentication is off.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Trusts only the certificates of this PEM file: the server's own, or the authority's that signed it. Default: those
    /// that the machine trusts.
    pub fn ca(mut self, file: impl AsRef<Path>) -> Self {
        self.ca = Some(file.as_ref().to_path_buf());
        self
    }

    /// Longest time to connect. Default: 5 seconds.
    pub fn connect_timeout(mut self, longest: Duration) -> Self {
        self.connect_timeout = longest;
        self
    }

    /// Longest time for an answer, where a call has none of its own. Default: a minute.
    pub fn answer_timeout(mut self, longest: Duration) -> Self {
        self.answer_timeout = longest;
        self
    }

    /// Makes the client. Nothing is sent yet.
    pub fn build(self) -> Result<Client, Error> {
        let base = Url::parse(&self.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base = base.ok_or_else(|| Error::NotAServer(self.url.clone()))?;
        if base.password().is_some() || !base.username().is_empty() {
            return Err(Error::SecretInUrl);
        }
        if self.key.as_ref().is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(Error::BadKey);
        }
        let mut builder = reqwest::Client::builder().connect_timeout(self.connect_timeout).redirect(Policy::none());
        if is_loopback(&base) {
            // A proxy of the network knows nothing of this machine's own ports.
            builder = builder.no_proxy();
        }
        if let Some(ca) = &self.ca {
            builder = builder.tls_backend_preconfigured(trust::only(ca)?);
        }
        let http = builder.build().map_err(|error| Error::Setup(root(&error)))?;
        let inner = Inner { http, base, key: self.key, answer_timeout: self.answer_timeout };
        Ok(Client { inner: Arc::new(inner) })
    }
}

impl Client {
    /// Begins with the URL of a server, such as [`DEFAULT_URL`]. It is shown in messages, so it holds no secret.
    pub fn builder(url: impl Into<String>) -> Builder {
        Builder {
            url: url.into(),
            key: None,
            ca: None,
            connect_timeout: CONNECT_TIMEOUT,
            answer_timeout: ANSWER_TIMEOUT,
        }
    }

    /// The server's address.
    pub fn base(&self) -> &str {
        self.inner.base.as_str()
    }

    /// Whether calls are encrypted on the way.
    pub fn is_encrypted(&self) -> bool {
        self.inner.base.scheme() == "https"
    }

    /// Whether the server is on this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.inner.base)
    }

    pub(crate) fn get<T>(&self, segments: &[&str]) -> Call<T> {
        self.call(Method::GET, segments, &[])
    }

    pub(crate) fn get_with<T>(&self, segments: &[&str], query: &[(&str, Option<String>)]) -> Call<T> {
        self.call(Method::GET, segments, query)
    }

    pub(crate) fn put<T>(&self, segments: &[&str]) -> Call<T> {
        self.call(Method::PUT, segments, &[])
    }

    pub(crate) fn post<T>(&self, segments: &[&str]) -> Call<T> {
        self.call(Method::POST, segments, &[])
    }

    pub(crate) fn delete<T>(&self, segments: &[&str]) -> Call<T> {
        self.call(Method::DELETE, segments, &[])
    }

    /// A call of a path, with what is given of a query. Everything is percent-encoded here.
    fn call<T>(&self, method: Method, segments: &[&str], query: &[(&str, Option<String>)]) -> Call<T> {
        let request = self.url(segments, query).map(|url| {
            let request = self.inner.http.request(method, url);
            match &self.inner.key {
                Some(key) => request.bearer_auth(key),
                None => request,
            }
        });
        Call::new(request, self.inner.base.clone(), Some(self.inner.answer_timeout))
    }

    fn url(&self, segments: &[&str], query: &[(&str, Option<String>)]) -> Result<Url, Error> {
        if let Some(dots) = segments.iter().find(|segment| matches!(**segment, "." | "..")) {
            // Whatever it is encoded as, a URL means "here" or "above" by it.
            return Err(Error::NotInAUrl((*dots).to_owned()));
        }
        let mut url = self.inner.base.clone();
        match url.path_segments_mut() {
            Ok(mut path) => path.pop_if_empty().extend(segments),
            Err(()) => return Err(Error::NotAServer(self.inner.base.to_string())),
        };
        for (name, value) in query {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        Ok(url)
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Client {
        Client::builder("http://127.0.0.1:1/below/").key("a-key").build().unwrap()
    }

    #[test]
    fn wrong_beginnings_are_refused_before_anything_is_sent() {
        let build = |url: &str, key: &str| Client::builder(url).key(key).build().map(|_| ());
        assert!(matches!(build("nowhere", "k"), Err(Error::NotAServer(_))));
        assert!(matches!(build("ftp://host", "k"), Err(Error::NotAServer(_))));
        assert!(matches!(build("http://me:secret@x", "k"), Err(Error::SecretInUrl)));
        assert!(matches!(build("http://x", "two words"), Err(Error::BadKey)));
        assert!(matches!(Client::builder("https://x").ca("/nowhere.pem").build(), Err(Error::Ca(_))));
    }

    #[test]
    fn whatever_stands_in_an_id_stays_in_its_segment() {
        let url = client().url(&["v1", "a/b?c#d e"], &[("q", Some("x&y".into())), ("absent", None)]).unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:1/below/v1/a%2Fb%3Fc%23d%20e?q=x%26y");
        assert!(matches!(client().url(&["v1", ".."], &[]), Err(Error::NotInAUrl(_))));
    }

    #[test]
    fn the_key_is_not_shown() {
        assert!(!format!("{:?}", client()).contains("a-key"));
    }

    #[test]
    fn this_machine_is_known_by_all_of_its_names() {
        let is = |url: &str| Client::builder(url).build().unwrap().is_loopback();
        assert!(is("http://localhost:1") && is("http://127.0.0.9") && is("http://[::1]:80"));
        assert!(!is("http://example.org") && !is("http://10.0.0.1"));
    }
}
