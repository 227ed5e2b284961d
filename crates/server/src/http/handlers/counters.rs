//! How many times?

use axum::extract::State;
use serde::Deserialize;
use tally::core::command::{Add, Command};
use tally::core::query::{CounterAnswer, CounterQuery};
use tally::core::reply::CounterReply;
use tally::core::{KeyId, Name};
use utoipa::ToSchema;

use super::{Outcome, answer, apply};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::Posted;
use crate::http::request::{Caller, Segments};

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
#[utoipa::path(
    post, path = "/v1/counters/{counter}/{key}", tag = "Counters",
    params(
        ("counter" = String, Path, description = "A declared counter, such as `views`"),
        ("key" = String, Path, description = "What is counted, such as `post:42`; 1 to 256 bytes"),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 128 visible ASCII characters"),
    ),
    request_body(content = Option<CountBody>),
    responses((status = 200, description = "The counter as it is now", body = CounterReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn add_to_counter(
    State(app): State<App>,
    caller: Caller,
    Segments((counter, key)): Segments<(String, String)>,
    posted: Posted,
) -> Outcome {
    caller.may(Permission::Count, None, None)?;
    let (counter, key) = (Name::new(&counter)?, KeyId::new(&key)?);
    let (CountBody { by }, once) = posted.read(&app, &caller)?;
    apply(&app, &caller, Command::from(Add { counter, key, by }), once).await
}

/// How many times?
#[utoipa::path(
    get, path = "/v1/counters/{counter}/{key}", tag = "Counters",
    params(
        ("counter" = String, Path, description = "A declared counter"),
        ("key" = String, Path, description = "What is counted"),
    ),
    responses((status = 200, description = "Its value", body = CounterAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_counter(
    State(app): State<App>,
    caller: Caller,
    Segments((counter, key)): Segments<(String, String)>,
) -> Outcome {
    caller.signed_in()?;
    let (counter, key) = (Name::new(&counter)?, KeyId::new(&key)?);
    answer(&app, &caller, CounterQuery { counter, key }).await
}
