//! Every error is a problem document (RFC 9457) with a stable code.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tally::Error;
use tally::core::error::Exhausted;
use tally::core::{Class, Code, Refusal};
use tally::engine::StoreError;

use super::rate;
use crate::auth::AuthError;
use crate::auth::policy::Denied;

/// An error as a client sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The stable code to decide on.
    pub code: Code,
    /// What is wrong here.
    pub detail: Box<str>,
    /// Where it is not the code's own.
    status: Option<StatusCode>,
    /// Which command of a batch was refused, and its own code.
    refused: Option<(usize, Code)>,
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

/// The status that goes with a class of problems.
fn status_of(class: Class) -> StatusCode {
    match class {
        Class::Wrong => StatusCode::BAD_REQUEST,
        Class::Unknown => StatusCode::UNAUTHORIZED,
        Class::Forbidden => StatusCode::FORBIDDEN,
        Class::Missing => StatusCode::NOT_FOUND,
        Class::Method => StatusCode::METHOD_NOT_ALLOWED,
        Class::Conflict => StatusCode::CONFLICT,
        Class::Gone => StatusCode::GONE,
        Class::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Class::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Class::Reused => StatusCode::UNPROCESSABLE_ENTITY,
        Class::TooMany => StatusCode::TOO_MANY_REQUESTS,
        Class::Later => StatusCode::SERVICE_UNAVAILABLE,
        Class::Broken => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl Problem {
    /// A problem with one of the codes.
    pub fn new(code: Code, detail: impl Into<Box<str>>) -> Self {
        Self { code, detail: detail.into(), status: None, refused: None, exhausted: None }
    }

    fn document(&self) -> Document<'_> {
        let code = self.code.name();
        Document {
            kind: format!("urn:tally:problem:{code}"),
            title: self.code.title(),
            status: self.status().as_u16(),
            detail: &self.detail,
            code,
            index: self.refused.map(|(index, _)| index),
            cause: self.refused.map(|(_, cause)| cause.name()),
        }
    }

    /// The status that goes with the code.
    pub fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| status_of(self.code.class()))
    }

    /// Headers that are too large, too many, or hold too long a path. HTTP has statuses of their own for these.
    pub fn large_head(status: StatusCode) -> Self {
        let detail = match status {
            StatusCode::URI_TOO_LONG => "the path is too long",
            _ => "the headers are too large or too many; bounds.header_bytes_max bounds them",
        };
        Self { status: Some(status), ..Self::new(Code::TooLarge, detail) }
    }

    /// A wrong request.
    pub fn bad_request(detail: impl Into<Box<str>>) -> Self {
        Self::new(Code::BadRequest, detail)
    }

    /// Something went wrong inside. The client is told no more than that.
    pub fn internal() -> Self {
        Self::new(Code::Internal, "something went wrong on the server; its log says what, under this request's id")
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

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, serde_json::to_vec(&self).unwrap_or_default()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        // For whoever counts them.
        response.extensions_mut().insert(self.code);
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
            Error::Overloaded => Self::new(Code::Overloaded, error.to_string()),
            Error::Stopping => Self::new(Code::Overloaded, "the server is stopping; try again shortly"),
            Error::Store(StoreError::TooLarge(why)) => {
                Self::new(Code::TooLarge, format!("{why}; nothing was done, send fewer commands at once"))
            }
            Error::Store(error) => {
                tracing::error!(%error, "the store could not do what was asked");
                Self::new(Code::StoreUnavailable, "the store cannot do this now; try again shortly")
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
        let code = if denied == Denied::Unauthenticated { Code::Unauthenticated } else { Code::Forbidden };
        Self::new(code, denied.to_string())
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        if error.is_transient() {
            tracing::warn!(%error, "a user's token could not be checked");
            return Self::new(Code::StoreUnavailable, "tokens cannot be checked now; try again shortly");
        }
        Self::new(Code::Unauthenticated, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_broken_inside_is_told_to_nobody() {
        let secret = Problem::from(Refusal::Broken("a secret of the inside".into()));
        assert_eq!(secret.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!secret.detail.contains("secret"));
    }

    /// A client that knows no more than the status is not led astray by a code.
    #[test]
    fn every_code_has_a_status_of_errors_and_a_name_of_its_own() {
        let names: std::collections::BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for code in Code::ALL {
            let status = Problem::new(*code, "x").status();
            assert!(status.is_client_error() || status.is_server_error(), "{code}");
        }
    }
}
