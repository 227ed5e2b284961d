//! Bodies of JSON: within their limit, of the right type, an object.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tally::core::Code;
use tally::core::command::Once;
use tally::core::limits::IDEMPOTENCY_KEY_CHARS_MAX;

use super::problem::Problem;
use super::request::{Caller, SignedIn};
use super::visitor::Unknown;
use crate::app::App;
use crate::auth::policy::Denied;
use crate::door::memory::Room;

/// A body of JSON with what an `Idempotency-Key` is about. It is read when it is known who calls.
pub struct Posted {
    /// The headers and the path, where there is such a key.
    keyed: Option<(HeaderMap, String)>,
    bytes: Bytes,
}

impl FromRequest<App> for Posted {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let is_keyed = request.headers().contains_key("idempotency-key");
        let keyed = is_keyed.then(|| (request.headers().clone(), request.uri().path().to_owned()));
        let bytes = read_body(request, app, app.settings.bounds.body_bytes_max).await?;
        Ok(Self { keyed, bytes })
    }
}

impl Posted {
    /// The idempotency key that it was sent with.
    pub fn key(&self) -> Result<Option<&str>, Problem> {
        self.keyed.as_ref().map_or(Ok(None), |(headers, _)| idempotency_key(headers))
    }

    /// What was sent; nothing is `{}`.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        parse(self.json())
    }

    fn json(&self) -> &[u8] {
        if self.bytes.is_empty() { b"{}" } else { &self.bytes }
    }

    /// What was sent, and the key that it was sent with.
    pub fn read<T: DeserializeOwned>(&self, caller: &Caller) -> Result<(T, Option<Once>), Problem> {
        let body = self.body()?;
        let once = match &self.keyed {
            Some((headers, path)) => caller.once(headers, path, self.json(), 1)?,
            None => None,
        };
        Ok((body, once))
    }
}

/// The call's idempotency key, where it has one.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| {
        (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    });
    let text = || format!("Idempotency-Key has 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters");
    key.map(Some).ok_or_else(|| Problem::bad_request(text()))
}

/// A JSON body; an absent one is the default, where there is one.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let bytes = read_body(request, app, app.settings.bounds.body_bytes_max).await?;
        if bytes.is_empty() { Ok(Self(T::default())) } else { parse(&bytes).map(Self) }
    }
}

/// Reads a JSON object.
pub fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    // Serde would take a list of the fields' values as well.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Problem::bad_request("the body is a JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|error| unreadable(&error))
}

/// What is said about a body that is not what it should be.
pub fn unreadable(error: &serde_json::Error) -> Problem {
    Problem::bad_request(format!("the body is wrong: {error}"))
}

/// Largest body of somebody who need not say who they are.
const UNKNOWN_BYTES_MAX: usize = 4 * 1024;

/// Reads a body of JSON, within its limit: only of who has said who they are or need not, in time, and while there is memory.
pub async fn read_body(request: Request, app: &App, bytes_max: usize) -> Result<Bytes, Problem> {
    let (parts, mut body) = request.into_parts();
    let bytes_max = match (parts.extensions.get::<SignedIn>(), parts.extensions.get::<Unknown>()) {
        (Some(SignedIn), _) => bytes_max,
        (None, Some(Unknown)) => bytes_max.min(UNKNOWN_BYTES_MAX),
        (None, None) => return Err(Denied::Unauthenticated.into()),
    };
    let Some(room) = parts.extensions.get::<Arc<Room>>().filter(|_| !body.is_end_stream()) else {
        return Ok(Bytes::new());
    };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    room.set_waits(true);
    let limit = app.settings.bounds.request_timeout;
    let read = tokio::time::timeout(limit, collect(&mut body, room, bytes_max)).await;
    let bytes = read.unwrap_or_else(|_| Err(late_body(limit)))?;
    room.set_waits(false);
    room.set_whole();
    if !bytes.is_empty() && !is_json(&parts.headers) {
        return Err(Problem::new(Code::UnsupportedMediaType, "send the body as application/json"));
    }
    Ok(bytes.into())
}

/// Copies a body as it comes, so that small parts do not hold large buffers.
async fn collect(body: &mut Body, room: &Room, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    const FIRST: usize = 16 * 1024;
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(announced.min(FIRST));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::bad_request("the body could not be read to its end"))?;
        let Ok(part) = frame.into_data() else { continue };
        if bytes.len() + part.len() > bytes_max {
            return Err(too_large(bytes_max));
        }
        if !room.grow(part.len()) {
            return Err(no_room());
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// What is said where other requests hold all that there is.
pub fn no_room() -> Problem {
    Problem::new(Code::Overloaded, "unfinished requests hold all that they may; try again shortly")
}

fn too_large(bytes_max: usize) -> Problem {
    Problem::new(Code::TooLarge, format!("the body has at most {bytes_max} bytes"))
}

/// What is said about a body that does not come.
pub fn late_body(limit: Duration) -> Problem {
    Problem::bad_request(format!("the body was not sent within {} ms", limit.as_millis()))
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}
