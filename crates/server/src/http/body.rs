//! Bodies of JSON: within their limit, of the right type, an object.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tally::core::command::Once;

use super::problem::Problem;
use super::request::Caller;
use crate::app::App;

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
        let bytes = read_body(request, app.settings.limits.body_bytes_max).await?;
        Ok(Self { keyed, bytes })
    }
}

impl Posted {
    /// What was sent; nothing is `{}`.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        if self.bytes.is_empty() { parse(b"{}") } else { parse(&self.bytes) }
    }

    /// What was sent, and the key that it was sent with.
    pub fn read<T: DeserializeOwned>(&self, caller: &Caller) -> Result<(T, Option<Once>), Problem> {
        let body = self.body()?;
        let once = match &self.keyed {
            Some((headers, path)) => caller.once(headers, path, &self.body()?)?,
            None => None,
        };
        Ok((body, once))
    }
}

/// A JSON body; an absent one is the default, where there is one.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let bytes = read_body(request, app.settings.limits.body_bytes_max).await?;
        if bytes.is_empty() { Ok(Self(T::default())) } else { parse(&bytes).map(Self) }
    }
}

/// Reads a JSON object.
pub fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    // Serde would take a list of the fields' values as well.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Problem::bad_request("the body is a JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|error| Problem::bad_request(format!("the body is wrong: {error}")))
}

/// Reads a body of JSON, within its limit.
pub async fn read_body(request: Request, bytes_max: usize) -> Result<Bytes, Problem> {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || Problem::new("too_large", format!("the body has at most {bytes_max} bytes"));
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    let bytes = match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => return Err(too_large()),
        Err(_) => return Err(Problem::bad_request("the body could not be read to its end")),
    };
    if !bytes.is_empty() && !is_json(&parts.headers) {
        return Err(Problem::new("unsupported_media_type", "send the body as application/json"));
    }
    Ok(bytes)
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}
