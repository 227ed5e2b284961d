//! May this happen now?

use axum::http::StatusCode;
use serde::Deserialize;
use tally::core::command::Take;
use tally::core::query::{LimitAnswer, LimitQuery};
use tally::core::reply::TakeReply;
use tally::core::{KeyId, Name};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Idempotent, tagged};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::Posted;
use crate::http::request::{Caller, Outcome, Pair, Segments};
use crate::http::{rate, reply};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Limits", "May this happen now?").routes(routes!(take, read_limit))
}

/// How much to use.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeBody {
    /// From 1 to all that the limit has. Default: 1.
    #[serde(default = "one")]
    #[schema(minimum = 1, default = 1)]
    cost: u64,
}

fn one() -> u64 {
    1
}

/// Use some of a limit
///
/// 429 `rate_limited` when there is not enough left, and nothing is used then. With an Idempotency-Key a retry is free.
#[utoipa::path(
    post, path = "/v1/limits/{limit}/{key}", tag = "Limits",
    params(
        ("limit" = String, Path, description = "A declared limit"),
        ("key" = String, Path, description = "Whose, such as a user or an address; 1 to 256 bytes"),
        Idempotent,
    ),
    request_body(content = Option<TakeBody>),
    responses(
        (status = 200, description = "It may happen", body = TakeReply, headers(
            ("RateLimit" = String, description = "How it stands: `\"posting\";r=REMAINING;t=SECONDS`"),
            ("RateLimit-Policy" = String, description = "What it is: `\"posting\";q=AMOUNT;w=SECONDS`"),
        )),
    ),
)]
pub async fn take(caller: Caller, Segments(path): Segments<Pair>, posted: Posted) -> Outcome {
    caller.may(Permission::Take, None, None)?;
    let (limit, key) = caller.two(&path)?;
    let (TakeBody { cost }, once) = posted.read(&caller)?;
    caller.reply(Take { limit, key, cost }, once).await
}

/// How does a limit stand?
///
/// Free: nothing is used.
#[utoipa::path(get, path = "/v1/limits/{limit}/{key}", tag = "Limits",
    params(("limit" = String, Path, description = "A declared limit"), ("key" = String, Path, description = "Whose")),
    responses((status = 200, description = "How it stands", body = LimitAnswer)))]
pub async fn read_limit(caller: Caller, Segments(path): Segments<Pair>) -> Outcome {
    let (limit, key): (Name, KeyId) = caller.two(&path)?;
    let standing = caller.ask(&LimitQuery { limit: limit.clone(), key }).await?;
    let mut response = reply::json(StatusCode::OK, &standing);
    rate::insert(response.headers_mut(), rate::Standing::of(limit.as_str(), &standing));
    Ok(response)
}
