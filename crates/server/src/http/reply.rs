//! Answers: JSON with the headers that the contract promises.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tally::core::command::{Cost, Decided};
use tally::core::reply::Reply;

use super::handlers::CommandReply;
use super::problem::{Document, Problem};
use super::rate;
use super::withheld::Shown;

const TALLY_COST: HeaderName = HeaderName::from_static("tally-cost");
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// A body of JSON.
pub fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => {
            let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            (status, [kind], bytes).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            Problem::internal().into_response()
        }
    }
}

/// A decision as an answer: its reply, what it cost, whether it is a replay.
pub fn decided(status: StatusCode, decided: Decided) -> Result<Response, Problem> {
    match decided.reply {
        Ok(reply) => {
            let mut response = json(status, &reply);
            if let Reply::Limit(taken) = &reply {
                rate::insert(response.headers_mut(), taken.into());
            }
            Ok(with_headers(response, decided.cost, decided.replayed))
        }
        Err(refusal) if decided.replayed => {
            Ok(with_headers(Problem::from(refusal).into_response(), decided.cost, true))
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// Adds the cost and, where it is one, says that this is a replay.
pub fn with_headers(mut response: Response, cost: Cost, replayed: bool) -> Response {
    let text = format!("reads={}, writes={}", cost.reads, cost.writes);
    if let Ok(value) = HeaderValue::from_maybe_shared(text) {
        response.headers_mut().insert(TALLY_COST, value);
    }
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// One command's part in the answer to a batch.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum BatchItem {
    /// It was decided.
    #[schema(value_type = CommandReply)]
    Reply(Shown),
    /// It was refused.
    #[schema(value_type = Document)]
    Problem(Problem),
}
