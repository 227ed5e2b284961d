//! One call renders a feed.

use serde::Deserialize;
use tally::core::bounded::AtMost;
use tally::core::limits::{FEED_OBJECTS_MAX, FEED_RELATIONS_MAX};
use tally::core::query::{FeedAnswer, FeedQuery};
use tally::core::{Name, ObjectId, SubjectId};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::http::body::Json;
use crate::http::request::{Caller, Outcome};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read))
}

/// What to read.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FeedBody {
    /// Whose edges to look for; a user's token stands for itself.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    viewer: Option<SubjectId>,
    /// The objects, answered in this order.
    #[schema(value_type = Vec<String>, max_items = 200)]
    objects: AtMost<ObjectId, FEED_OBJECTS_MAX>,
    /// The relations.
    #[serde(default)]
    #[schema(value_type = Vec<String>, max_items = 16)]
    relations: AtMost<Name, FEED_RELATIONS_MAX>,
    /// Counters to read too; an object's id is the key.
    #[serde(default)]
    #[schema(value_type = Vec<String>, max_items = 16)]
    counters: AtMost<Name, FEED_RELATIONS_MAX>,
}

/// Counts and counters of many objects, and whether the viewer is in each
#[utoipa::path(post, path = "/v1/read", tag = "Relations",
    request_body(content = FeedBody), responses((status = 200, description = "One item per object, in order", body = FeedAnswer)))]
pub async fn read(caller: Caller, Json(body): Json<FeedBody>) -> Outcome {
    let FeedBody { viewer, objects: AtMost(objects), relations: AtMost(relations), counters: AtMost(counters) } = body;
    let viewer = caller.viewer(viewer.as_ref().map(SubjectId::as_str))?;
    caller.answer(FeedQuery { viewer, objects, relations, counters }).await
}
