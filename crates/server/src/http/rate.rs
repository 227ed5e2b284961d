//! What a limit tells with every answer: `RateLimit` and `RateLimit-Policy`, as the IETF's draft has them.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tally::core::error::Exhausted;
use tally::core::query::LimitAnswer;
use tally::core::reply::TakeReply;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// How a limit stands.
pub struct Standing<'a> {
    name: &'a str,
    remaining: u64,
    reset_ms: u64,
    amount: u64,
    window_ms: u64,
}

impl<'a> From<&'a Exhausted> for Standing<'a> {
    fn from(limit: &'a Exhausted) -> Self {
        let Exhausted { limit: name, amount, window_ms, remaining, reset_ms, .. } = limit;
        Self { name, remaining: *remaining, reset_ms: *reset_ms, amount: *amount, window_ms: *window_ms }
    }
}

impl<'a> From<&'a TakeReply> for Standing<'a> {
    fn from(reply: &'a TakeReply) -> Self {
        let TakeReply { remaining, reset_ms, amount, window_ms, .. } = *reply;
        Self { name: reply.limit.as_str(), remaining, reset_ms, amount, window_ms }
    }
}

impl<'a> Standing<'a> {
    /// How a limit of this name answered that it stands.
    pub fn of(name: &'a str, answer: &LimitAnswer) -> Self {
        let LimitAnswer { remaining, reset_ms, amount, window_ms } = *answer;
        Self { name, remaining, reset_ms, amount, window_ms }
    }
}

/// Whole seconds, rounded up.
pub fn seconds(ms: u64) -> u64 {
    ms.div_ceil(1_000)
}

/// Adds both headers. Names of limits are plain words, so they need no escaping inside their quotes.
pub fn insert(headers: &mut HeaderMap, limit: Standing<'_>) {
    let Standing { name, remaining, reset_ms, amount, window_ms } = limit;
    let now = format!("\"{name}\";r={remaining};t={}", seconds(reset_ms));
    let policy = format!("\"{name}\";q={amount};w={}", seconds(window_ms));
    for (header, text) in [(RATE_LIMIT, now), (RATE_LIMIT_POLICY, policy)] {
        if let Ok(value) = HeaderValue::from_maybe_shared(text) {
            headers.insert(header, value);
        }
    }
}
