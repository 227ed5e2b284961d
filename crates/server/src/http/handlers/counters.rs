//! How many times?

use serde::Deserialize;
use tally::core::command::Add;
use tally::core::query::{CounterAnswer, CounterQuery};
use tally::core::reply::CounterReply;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Idempotent, tagged};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::Posted;
use crate::http::request::{Caller, Outcome, Pair, Segments};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Counters", "How many times?").routes(routes!(add_to_counter, read_counter))
}

/// How much to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CountBody {
    /// Any integer. Default: 1.
    #[serde(default = "one")]
    #[schema(default = 1)]
    by: i64,
}

fn one() -> i64 {
    1
}

/// Add to a counter
///
/// A retry counts again, so send an Idempotency-Key where that matters.
#[utoipa::path(post, path = "/v1/counters/{counter}/{key}", tag = "Counters",
    params(
        ("counter" = String, Path, description = "A declared counter, such as `views`"),
        ("key" = String, Path, description = "What is counted, such as `post:42`; 1 to 256 bytes"),
        Idempotent,
    ),
    request_body(content = Option<CountBody>), responses((status = 200, description = "The counter as it is now", body = CounterReply)))]
pub async fn add_to_counter(caller: Caller, Segments(path): Segments<Pair>, posted: Posted) -> Outcome {
    caller.may(Permission::Count, None, None)?;
    let (counter, key) = caller.two(&path)?;
    let (CountBody { by }, once) = posted.read(&caller)?;
    caller.reply(Add { counter, key, by }, once).await
}

/// How many times?
#[utoipa::path(get, path = "/v1/counters/{counter}/{key}", tag = "Counters",
    params(("counter" = String, Path, description = "A declared counter"), ("key" = String, Path, description = "What is counted")),
    responses((status = 200, description = "Its value", body = CounterAnswer)))]
pub async fn read_counter(caller: Caller, Segments(path): Segments<Pair>) -> Outcome {
    let (counter, key) = caller.two(&path)?;
    caller.answer(CounterQuery { counter, key }).await
}
