//! Every error is a problem document (RFC 9457) with a stable code.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tally::Error;
use tally::core::Refusal;
use tally::core::error::Exhausted;

use super::rate;
use crate::auth::AuthError;
use crate::auth::policy::Denied;

/// An error as a client sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The stable code to decide on.
    pub code: &'static str,
    /// What is wrong here.
    pub detail: Box<str>,
    /// Where it is not the code's own.
    status: Option<StatusCode>,
    /// Which command of a batch was refused, and its own code.
    refused: Option<(usize, &'static str)>,
    /// The limit that is used up.
    exhausted: Option<Box<Exhausted>>,
}

/// A problem as it is written (RFC 9457).
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub struct Document<'a> {
    /// Names the kind of problem.
    #[serde(rename = "type")]
    kind: String,
    /// The kind of problem, in words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What is wrong here.
    detail: &'a str,
    /// The stable code to decide on.
    code: &'static str,
    /// The place of the refused command in its batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    /// The refused command's own code.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
}

impl Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.document().serialize(to)
    }
}

/// Every code with its status and title: the contract's table.
const CODES: [(&str, StatusCode, &str); 25] = [
    ("bad_request", StatusCode::BAD_REQUEST, "The request is wrong"),
    ("bad_cursor", StatusCode::BAD_REQUEST, "The cursor is wrong"),
    ("unauthenticated", StatusCode::UNAUTHORIZED, "Who are you?"),
    ("forbidden", StatusCode::FORBIDDEN, "Not allowed"),
    ("condition_failed", StatusCode::FORBIDDEN, "A condition does not hold"),
    ("not_found", StatusCode::NOT_FOUND, "Not found"),
    ("relation_not_found", StatusCode::NOT_FOUND, "No such relation"),
    ("counter_not_found", StatusCode::NOT_FOUND, "No such counter"),
    ("unique_not_found", StatusCode::NOT_FOUND, "No such unique count"),
    ("attendance_not_found", StatusCode::NOT_FOUND, "No such attendance sheet"),
    ("board_not_found", StatusCode::NOT_FOUND, "No such board"),
    ("limit_not_found", StatusCode::NOT_FOUND, "No such limit"),
    ("object_not_found", StatusCode::NOT_FOUND, "No such object"),
    ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"),
    ("conflict", StatusCode::CONFLICT, "Conflict"),
    ("immutable", StatusCode::CONFLICT, "Edges are immutable"),
    ("limit_exceeded", StatusCode::CONFLICT, "Limit exceeded"),
    ("batch_refused", StatusCode::CONFLICT, "The batch was refused"),
    ("too_large", StatusCode::PAYLOAD_TOO_LARGE, "Too large"),
    ("unsupported_media_type", StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported media type"),
    ("idempotency_key_reused", StatusCode::UNPROCESSABLE_ENTITY, "Idempotency key reused"),
    ("rate_limited", StatusCode::TOO_MANY_REQUESTS, "Too many requests"),
    ("overloaded", StatusCode::SERVICE_UNAVAILABLE, "Overloaded"),
    ("store_unavailable", StatusCode::SERVICE_UNAVAILABLE, "The store is unavailable"),
    ("internal", StatusCode::INTERNAL_SERVER_ERROR, "Internal error"),
];

impl Problem {
    /// A problem with one of the codes above.
    pub fn new(code: &'static str, detail: impl Into<Box<str>>) -> Self {
        Self { code, detail: detail.into(), status: None, refused: None, exhausted: None }
    }

    fn document(&self) -> Document<'_> {
        let (code, _, title) = entry(self.code);
        Document {
            kind: format!("urn:tally:problem:{code}"),
            title,
            status: self.status().as_u16(),
            detail: &self.detail,
            code,
            index: self.refused.map(|(index, _)| index),
            cause: self.refused.map(|(_, cause)| cause),
        }
    }

    /// The status that goes with the code.
    pub fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| entry(self.code).1)
    }

    /// Headers that are too large, too many, or hold too long a path. HTTP has statuses of their own for these.
    pub fn large_head(status: StatusCode) -> Self {
        let detail = match status {
            StatusCode::URI_TOO_LONG => "the path is too long",
            _ => "the headers are too large or too many; limits.header_bytes_max bounds them",
        };
        Self { status: Some(status), ..Self::new("too_large", detail) }
    }

    /// A wrong request.
    pub fn bad_request(detail: impl Into<Box<str>>) -> Self {
        Self::new("bad_request", detail)
    }

    /// Something went wrong inside. The client is told no more than that.
    pub fn internal() -> Self {
        Self::new("internal", "something went wrong on the server; its log says what, under this request's id")
    }
}

/// A whole answer of HTTP/1.1 for who cannot be answered otherwise; the connection ends with it.
pub fn on_the_wire(problem: &Problem) -> Vec<u8> {
    let body = serde_json::to_string(problem).unwrap_or_default();
    let (status, length) = (problem.status(), body.len());
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/problem+json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A code's line in the table.
fn entry(code: &str) -> (&'static str, StatusCode, &'static str) {
    *CODES.iter().find(|(known, ..)| *known == code).unwrap_or(&CODES[CODES.len() - 1])
}

/// Which problem an answer is, for whoever counts them.
#[derive(Clone, Copy)]
pub struct Code(pub &'static str);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, serde_json::to_vec(&self).unwrap_or_default()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response.extensions_mut().insert(Code(self.code));
        let headers = response.headers_mut();
        if let Some(limit) = &self.exhausted {
            headers.insert(header::RETRY_AFTER, rate::seconds(limit.retry_after_ms).max(1).into());
            rate::insert(headers, rate::Standing::from(&**limit));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        if let Refusal::Broken(detail) = &refusal {
            tracing::error!(detail, "a decision failed an internal check; nothing was written");
            return Self::internal();
        }
        if let Refusal::ConditionFailed(condition) = &refusal {
            tracing::debug!(condition, "a condition does not hold");
        }
        let mut problem = Self::new(refusal.code(), refusal.to_string());
        match refusal {
            Refusal::BatchRefused { index, cause } => problem.refused = Some((index, cause.code())),
            Refusal::RateLimited(limit) => problem.exhausted = Some(limit),
            _ => {}
        }
        problem
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Overloaded => Self::new("overloaded", error.to_string()),
            Error::Stopping => Self::new("overloaded", "the server is stopping; try again shortly"),
            Error::Store(error) => {
                tracing::error!(%error, "the store could not do what was asked");
                Self::new("store_unavailable", "the store cannot do this now; try again shortly")
            }
            Error::Open(_) | Error::Copy(_) => {
                tracing::error!(%error, "the store could not be opened");
                Self::internal()
            }
        }
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let code = if denied == Denied::Unauthenticated { "unauthenticated" } else { "forbidden" };
        Self::new(code, denied.to_string())
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        if error.is_transient() {
            tracing::warn!(%error, "a user's token could not be checked");
            return Self::new("store_unavailable", "tokens cannot be checked now; try again shortly");
        }
        Self::new("unauthenticated", error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally::core::Name;
    use tally::core::error::Declared;

    fn declared(what: Declared) -> Refusal {
        Refusal::NotDeclared { what, name: Name::new("x").unwrap(), near: None }
    }

    fn used_up(retry_after_ms: u64) -> Exhausted {
        let limit = "posting".into();
        Exhausted { limit, amount: 100, window_ms: 60_000, remaining: 0, reset_ms: 59_001, retry_after_ms }
    }

    #[test]
    fn a_used_up_limit_says_when_to_come_back() {
        for (ms, seconds) in [(1, "1"), (1_000, "1"), (1_001, "2"), (59_900, "60")] {
            let answer = Problem::from(Refusal::RateLimited(Box::new(used_up(ms)))).into_response();
            assert_eq!(answer.headers()["retry-after"], seconds, "{ms} ms");
            assert_eq!(answer.headers()["ratelimit"], "\"posting\";r=0;t=60");
            assert_eq!(answer.headers()["ratelimit-policy"], "\"posting\";q=100;w=60");
        }
    }

    #[test]
    fn every_refusal_has_a_code_of_the_contract() {
        let name = Name::new("like").unwrap();
        for refusal in [
            Refusal::bad_request("x"),
            Refusal::BadCursor,
            Refusal::NotFound("x".into()),
            Refusal::RelationNotFound { name: name.clone(), near: None },
            Refusal::Forbidden("x".into()),
            Refusal::ConditionFailed("x".into()),
            Refusal::Immutable,
            Refusal::LimitExceeded { relation: name, limit: 1 },
            Refusal::Conflict("x".into()),
            Refusal::TooLarge("x".into()),
            Refusal::IdempotencyKeyReused { field: "x".into() },
            Refusal::BatchRefused { index: 3, cause: Box::new(Refusal::Immutable) },
            Refusal::RateLimited(Box::new(used_up(1))),
            declared(Declared::Counter),
            declared(Declared::Unique),
            declared(Declared::Attendance),
            declared(Declared::Board),
            declared(Declared::Limit),
        ] {
            let code = refusal.code();
            assert_eq!(Problem::from(refusal).code, code);
        }
        let secret = Problem::from(Refusal::Broken("a secret of the inside".into()));
        assert_eq!(secret.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!secret.detail.contains("secret"));
    }
}
