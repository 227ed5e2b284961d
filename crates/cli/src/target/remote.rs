//! A running server, over its HTTP API.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tally::VerifyReport;
use tally::core::command::JobReply;
use tally::core::rows::Side;
use tally_server::tls::install_crypto;

use super::{Ask, BackupMade, TargetArgs, follow, trust};
use crate::failure::Failure;
use crate::output::Json;

const DEFAULT_URL: &str = "http://127.0.0.1:7700";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The server gives up before this by itself, and says why.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A server and who asks it.
pub(crate) struct Remote {
    client: reqwest::Client,
    base: Url,
    key: Option<String>,
}

#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
}

impl Remote {
    /// Finds out which server, and with which key. Nothing is sent yet.
    pub(crate) fn new(args: &TargetArgs) -> Result<Self, Failure> {
        install_crypto();
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = args.url.clone().or_else(|| set("TALLY_URL")).unwrap_or_else(|| DEFAULT_URL.into());
        let base = Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base =
            base.ok_or_else(|| Failure::usage(format!("`{url}` is not a server; use a URL such as {DEFAULT_URL}")))?;
        if base.password().is_some() || !base.username().is_empty() {
            return Err(Failure::usage("a URL is shown in messages, so it holds no secret: use --key or TALLY_KEY"));
        }
        let key = args.key.clone().or_else(|| set("TALLY_KEY")).or_else(|| set("TALLY_ADMIN_KEY"));
        if key.as_ref().is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(Failure::usage("a key is visible ASCII characters, without spaces"));
        }
        let mut builder =
            reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).redirect(reqwest::redirect::Policy::none());
        if is_loopback(&base) {
            // A proxy of the network knows nothing of this machine's own ports.
            builder = builder.no_proxy();
        }
        if let Some(ca) = args.ca.clone().or_else(|| set("TALLY_CA").map(Into::into)) {
            builder = builder.tls_backend_preconfigured(trust::only(&ca)?);
        }
        let client = builder.build().map_err(|error| Failure::new(format!("no HTTP client: {}", root(&error))))?;
        Ok(Self { client, base, key })
    }

    /// The server's address.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// Whether it is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }

    /// Asks for one thing.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Json, Failure> {
        let request = self.request_of(ask)?.timeout(ANSWER_TIMEOUT);
        self.text(self.answered(request).await?).await.map(Json::new)
    }

    /// Recounts everything, with progress.
    pub(crate) async fn verify(&self, repair: bool, progress: impl FnMut(u64)) -> Result<VerifyReport, Failure> {
        let request = self.request(Method::POST, &["v1", "verify"])?.json(&json!({"repair": repair}));
        let response = self.answered(request.timeout(ANSWER_TIMEOUT)).await?;
        let begun = Json::new(self.text(response).await?).read()?;
        follow::verification(begun, async |id| self.job(id).await, progress).await
    }

    async fn job(&self, id: &str) -> Result<JobReply, Failure> {
        let request = self.request(Method::GET, &["v1", "jobs", id])?.timeout(ANSWER_TIMEOUT);
        Json::new(self.text(self.answered(request).await?).await?).read()
    }

    /// Has the server write a copy below its backup folder.
    pub(crate) async fn backup(&self, name: Option<&str>) -> Result<BackupMade, Failure> {
        if name.is_some_and(|name| name.contains('/')) {
            return Err(Failure::usage(
                "a server writes below its own backup folder, so DEST is a name without `/`; a path needs --store",
            ));
        }
        let request = self.request(Method::POST, &["v1", "backup"])?.json(&json!({"name": name}));
        let response = self.answered(request).await?;
        Json::new(self.text(response).await?).read()
    }

    /// A request to a path of the server.
    pub(crate) fn request(&self, method: Method, segments: &[&str]) -> Result<RequestBuilder, Failure> {
        self.request_with(method, segments, &[])
    }

    /// A request with a query, of what is given of it. Everything is percent-encoded here.
    pub(super) fn request_with(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, Option<String>)],
    ) -> Result<RequestBuilder, Failure> {
        if let Some(dots) = segments.iter().find(|segment| matches!(**segment, "." | "..")) {
            // Whatever it is encoded as, a URL means "here" or "above" by it.
            return Err(Failure::usage(format!("the id `{dots}` cannot stand in a URL; use --store")));
        }
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut path) => path.pop_if_empty().extend(segments),
            Err(()) => return Err(Failure::usage(format!("`{}` is not a server", self.base))),
        };
        for (name, value) in query {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let request = self.client.request(method, url);
        Ok(match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        })
    }

    /// Sends a request, and turns a problem document into a failure.
    pub(crate) async fn answered(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.unwrap_or_default();
        Err(match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) if problem.code == "unauthenticated" => {
                Failure::problem(&problem.code, &format!("{}; give a key with --key or TALLY_KEY", problem.detail))
            }
            Ok(problem) => Failure::problem(&problem.code, &problem.detail),
            Err(_) => Failure::new(format!("{} answered {status} in other words: is it a Tally server?", self.base)),
        })
    }

    async fn text(&self, response: Response) -> Result<String, Failure> {
        response.text().await.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let base = self.base.as_str().trim_end_matches('/');
        if error.is_timeout() && !error.is_connect() {
            return Failure::new(format!(
                "{base} did not answer in time; whether a write took effect is seen by reading"
            ));
        }
        let why = root(error);
        if why.contains("certificate") {
            return Failure::new(format!("cannot trust {base}: {}", advice(&why)));
        }
        Failure::new(format!(
            "cannot reach {base}: {why}; start it with `tally serve`, name another with --url, or a folder with --store"
        ))
    }

    /// The contract, in one place: what each question is in HTTP.
    fn request_of(&self, ask: &Ask) -> Result<RequestBuilder, Failure> {
        match ask {
            Ask::Relate { relation, object, subject, kind, meta } => {
                let path = ["v1", "relations", relation.as_str(), object.as_str(), subject.as_str()];
                let request = self.request(Method::PUT, &path)?;
                let mut body = serde_json::Map::new();
                body.extend(kind.as_ref().map(|kind| ("kind".to_owned(), json!(kind))));
                body.extend(meta.as_ref().map(|meta| ("meta".to_owned(), json!(meta))));
                Ok(if body.is_empty() { request } else { request.json(&Value::Object(body)) })
            }
            Ask::Unrelate { relation, object, subject } => {
                self.request(Method::DELETE, &["v1", "relations", relation.as_str(), object.as_str(), subject.as_str()])
            }
            Ask::Count { relation, object, viewer } => {
                let path = ["v1", "relations", relation.as_str(), object.as_str()];
                self.request_with(Method::GET, &path, &[("viewer", viewer.as_ref().map(ToString::to_string))])
            }
            Ask::List { side, relation, id, limit, cursor } => {
                let path: [&str; 5] = match side {
                    Side::Object => ["v1", "relations", relation.as_str(), id, "subjects"],
                    Side::Subject => ["v1", "subjects", id, "relations", relation.as_str()],
                };
                self.request_with(Method::GET, &path, &[("limit", Some(limit.to_string())), ("cursor", cursor.clone())])
            }
            Ask::Feed { viewer, objects, relations, counters } => {
                let body = json!({"viewer": viewer, "objects": objects, "relations": relations, "counters": counters});
                Ok(self.request(Method::POST, &["v1", "read"])?.json(&body))
            }
            Ask::Change(command) => self.change(command),
            Ask::Counting(query) => self.counting(query),
            Ask::CreateKey { role, name } => {
                Ok(self.request(Method::POST, &["v1", "keys"])?.json(&json!({"role": role, "name": name})))
            }
            Ask::Keys => self.request(Method::GET, &["v1", "keys"]),
            Ask::RevokeKey { id } => self.request(Method::DELETE, &["v1", "keys", id]),
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The last cause is what the system said; what stands above it is how the library came there.
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// What to do about a certificate that is not trusted, by what the library says of it.
fn advice(why: &str) -> String {
    if why.contains("NotValidForName") || why.contains("not valid for name") {
        return format!("its certificate is for another name ({why}); call the server as its certificate does");
    }
    if why.contains("Expired") || why.contains("expired") {
        return format!("its certificate has expired ({why}); give the server a new one");
    }
    format!(
        "nobody that this machine trusts has signed its certificate ({why}); if it is yours, name the certificate, or the \
         authority's that signed it, with --ca FILE or TALLY_CA"
    )
}
