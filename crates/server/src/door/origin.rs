//! Which pages may ask: CORS by `[http.cors]`; and with `--dev`, where nobody has to say who they are, only
//! pages and names of this machine.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use tally::core::Code;
use tally_settings::{Cors, Settings};

use crate::http::problem::Problem;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, PUT, POST, DELETE");
const SENT: HeaderValue = HeaderValue::from_static("authorization, content-type, idempotency-key, x-request-id");
const SHOWN: HeaderValue = HeaderValue::from_static(
    "idempotent-replayed, ratelimit, ratelimit-policy, retry-after, tally-cost, www-authenticate, x-request-id",
);
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
const VARY_ORIGIN: HeaderValue = HeaderValue::from_static("origin");
const VARY_PREFLIGHT: HeaderValue =
    HeaderValue::from_static("origin, access-control-request-method, access-control-request-headers");
const YES: HeaderValue = HeaderValue::from_static("true");
const ASKS_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// What a page on any other site is told, and what a name that is not ours is.
const DEV_ORIGIN: &str = "with --dev only pages of this machine may ask: a file, or http://localhost";
const DEV_HOST: &str = "with --dev the server answers to names of this machine only: localhost, 127.0.0.1, [::1]";

/// How a request stands towards the pages of browsers.
#[derive(Debug, Default, PartialEq)]
pub struct Visit {
    /// The origin that may read the answer, as it is told.
    allowed: Option<HeaderValue>,
    /// Whether other origins would be answered otherwise.
    varies: bool,
    credentials: bool,
}

impl Visit {
    /// Looks at where a request comes from. Refused where authentication is off and it is not this machine.
    pub fn of<B>(settings: &Settings, request: &Request<B>) -> Result<Self, Problem> {
        let origin = request.headers().get(header::ORIGIN);
        if settings.dev {
            if !names(request).is_some_and(|names| names.iter().all(|name| is_loopback(name))) {
                return Err(Problem::new(Code::Forbidden, DEV_HOST));
            }
            let mut origins = request.headers().get_all(header::ORIGIN).iter();
            if !origins.all(|origin| origin == "null" || is_loopback_origin(origin)) {
                return Err(Problem::new(Code::Forbidden, DEV_ORIGIN));
            }
            return Ok(Self { allowed: origin.cloned(), varies: true, credentials: false });
        }
        let Some(Cors { origins, credentials }) = &settings.cors else { return Ok(Self::default()) };
        if origins.iter().any(|allowed| allowed == "*") {
            let allowed = origin.map(|_| HeaderValue::from_static("*"));
            return Ok(Self { allowed, varies: false, credentials: false });
        }
        let allowed = origin.filter(|origin| origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()));
        Ok(Self { allowed: allowed.cloned(), varies: true, credentials: *credentials })
    }

    /// The answer to a browser that asks whether it may ask.
    pub fn preflight<B>(&self, request: &Request<B>) -> Option<Result<Response<axum::body::Body>, Problem>> {
        let headers = request.headers();
        let asks = request.method() == Method::OPTIONS
            && headers.contains_key(header::ORIGIN)
            && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !asks || (self.allowed.is_none() && !self.varies) {
            return None;
        }
        if self.allowed.is_none() {
            let text = "pages of this origin may not ask; [http.cors] says which may";
            return Some(Err(Problem::new(Code::Forbidden, text)));
        }
        let mut response = Response::new(axum::body::Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let answer = response.headers_mut();
        answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, SENT);
        answer.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        answer.insert(header::VARY, VARY_PREFLIGHT);
        if headers.get(ASKS_PRIVATE).is_some_and(|asks| asks == "true") {
            answer.insert(ALLOW_PRIVATE, YES);
        }
        Some(Ok(response))
    }

    /// Says in an answer who may read it.
    pub fn stamp(&self, headers: &mut HeaderMap) {
        if self.varies && !headers.contains_key(header::VARY) {
            headers.insert(header::VARY, VARY_ORIGIN);
        }
        if let Some(origin) = &self.allowed {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN);
            if self.credentials {
                headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, YES);
            }
        }
    }
}

/// Whether a page that keeps its origin to itself asks: a file, or a frame that some site has put in a sandbox.
pub fn is_nameless(headers: &HeaderMap) -> bool {
    headers.get_all(header::ORIGIN).iter().any(|origin| origin == "null")
}

/// Whether a page of another origin asks. Pages of this server's own are none.
pub fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let page = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    page.is_none() || page != headers.get(header::HOST).and_then(|host| host.to_str().ok())
}

/// Every name that a request calls the server by; none where it calls it nothing or something unreadable.
fn names<B>(request: &Request<B>) -> Option<Vec<&str>> {
    let own = request.uri().authority().map(|authority| Some(authority.as_str()));
    let headers = request.headers().get_all(header::HOST).iter().map(|host| host.to_str().ok());
    let names: Option<Vec<&str>> = own.into_iter().chain(headers).collect();
    names.filter(|names| !names.is_empty())
}

/// Whether a name, perhaps with a port, is one of this machine's own that no name server decides on.
fn is_loopback(authority: &str) -> bool {
    if authority.contains('@') {
        return false;
    }
    let host = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) if port.is_empty() || is_port(port) => host,
            _ => return false,
        },
        None => match authority.rfind(':') {
            Some(at) if is_port(&authority[at..]) => &authority[..at],
            Some(_) => return false,
            None => authority,
        },
    };
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

fn is_loopback_origin(origin: &HeaderValue) -> bool {
    let page = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    page.is_some_and(|(scheme, host)| matches!(scheme, "http" | "https") && is_loopback(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_and_no_others() {
        let own = ["localhost", "LOCALHOST:7700", "127.0.0.1", "127.9.9.9:1", "[::1]", "[::1]:7700"];
        let others = [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:7700",
            "evil.example:7700",
            "localhost:7700@evil.example",
            "user@localhost",
            "0.0.0.0",
            "192.168.0.1",
            "[::]",
            "[::1]x",
            "::1",
            "localhost:",
            "localhost:x",
            "",
        ];
        for name in own {
            assert!(is_loopback(name), "{name}");
            assert!(is_loopback_origin(&HeaderValue::try_from(format!("http://{name}")).unwrap()), "{name}");
        }
        for name in others {
            assert!(!is_loopback(name), "{name}");
            assert!(!is_loopback_origin(&HeaderValue::try_from(format!("http://{name}")).unwrap()), "{name}");
        }
        for origin in ["localhost", "file://localhost", "chrome-extension://localhost", "null"] {
            assert!(!is_loopback_origin(&HeaderValue::from_static(origin)), "{origin}");
        }
    }

    #[test]
    fn the_servers_own_pages_are_not_foreign() {
        let headers = |origin: &'static str| {
            let pairs = [(header::HOST, "tally.example:7700"), (header::ORIGIN, origin)];
            pairs.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect::<HeaderMap>()
        };
        assert!(!is_foreign(&headers("https://tally.example:7700")));
        assert!(is_foreign(&headers("https://app.example")));
        assert!(is_foreign(&headers("null")));
        assert!(!is_foreign(&HeaderMap::new()));
    }
}
