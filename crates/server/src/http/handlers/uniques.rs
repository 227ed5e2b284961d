//! How many different ones?

use axum::extract::RawQuery;
use serde::Deserialize;
use tally::core::bounded::AtMost;
use tally::core::command::Observe;
use tally::core::limits::UNIQUE_MEMBERS_MAX;
use tally::core::query::{UniqueAnswer, UniqueQuery};
use tally::core::reply::UniqueReply;
use tally::core::{KeyId, Name};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Idempotent, tagged};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::Posted;
use crate::http::request::{Caller, Outcome, Pair, Segments, listed};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Uniques", "How many different ones?").routes(routes!(observe, read_unique)).routes(routes!(read_union))
}

/// Who was seen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ObserveBody {
    /// Any texts of 1 to 256 bytes.
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 1000)]
    members: AtMost<String, UNIQUE_MEMBERS_MAX>,
}

/// Note who was seen
///
/// Adding someone again changes nothing. The members themselves are not kept.
#[utoipa::path(post, path = "/v1/uniques/{unique}/{key}", tag = "Uniques",
    params(
        ("unique" = String, Path, description = "A declared unique count, such as `dau`"),
        ("key" = String, Path, description = "What is counted, such as `2026-01-31`; 1 to 256 bytes"),
        Idempotent,
    ),
    request_body(content = ObserveBody), responses((status = 200, description = "The count as it is now", body = UniqueReply)))]
pub async fn observe(caller: Caller, Segments(path): Segments<Pair>, posted: Posted) -> Outcome {
    caller.may(Permission::Observe, None, None)?;
    let (unique, key) = caller.two(&path)?;
    let (ObserveBody { members }, once) = posted.read(&caller)?;
    caller.reply(Observe { unique, key, members: members.0 }, once).await
}

/// How many different ones are in a key?
#[utoipa::path(get, path = "/v1/uniques/{unique}/{key}", tag = "Uniques",
    params(("unique" = String, Path, description = "A declared unique count"), ("key" = String, Path, description = "What is counted")),
    responses((status = 200, description = "About how many", body = UniqueAnswer)))]
pub async fn read_unique(caller: Caller, Segments(path): Segments<Pair>) -> Outcome {
    let (unique, key) = caller.two(&path)?;
    caller.answer(UniqueQuery { unique, keys: vec![key] }).await
}

/// How many different ones are in several keys together?
///
/// Days into a week: whoever is in more than one key counts once.
#[utoipa::path(get, path = "/v1/uniques/{unique}", tag = "Uniques",
    params(
        ("unique" = String, Path, description = "A declared unique count"),
        ("keys" = String, Query, description = "1 to 400 keys, separated by commas; a comma inside a key is written %2C"),
    ),
    responses((status = 200, description = "About how many", body = UniqueAnswer)))]
pub async fn read_union(caller: Caller, Segments(unique): Segments<String>, RawQuery(query): RawQuery) -> Outcome {
    let unique = Name::new(&unique)?;
    let keys =
        listed(&query.unwrap_or_default(), "keys")?.iter().map(|key| KeyId::new(key)).collect::<Result<_, _>>()?;
    caller.answer(UniqueQuery { unique, keys }).await
}
