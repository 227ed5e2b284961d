//! The registry of objects.

use serde::Deserialize;
use tally::core::ObjectId;
use tally::core::bounded::BoundedMeta;
use tally::core::command::{DeleteObject, PutObject};
use tally::core::query::ObjectQuery;
use tally::core::reply::{JobReply, ObjectReply};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::tagged;
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::Json;
use crate::http::request::{Caller, Outcome, Segments};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Objects", "The registry for existence rules").routes(routes!(put, get, delete))
}

/// What an object is registered with.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectBody {
    /// Free text, such as `published`.
    #[serde(default)]
    status: Option<String>,
    /// Free-form attributes; `owner` is what `allow_self` looks at.
    #[serde(default)]
    #[schema(value_type = Object)]
    attributes: BoundedMeta,
}

/// Register an object, or change what it is registered with
#[utoipa::path(put, path = "/v1/objects/{object}", tag = "Objects",
    params(("object" = String, Path, description = "`type:id`")),
    request_body(content = Option<ObjectBody>), responses((status = 200, description = "The object as it is now", body = ObjectReply)))]
pub async fn put(caller: Caller, Segments(object): Segments<String>, Json(body): Json<ObjectBody>) -> Outcome {
    caller.may(Permission::PutObject, None, None)?;
    let object = ObjectId::new(&object)?;
    let command = PutObject { object, status: body.status, attributes: body.attributes.0 };
    caller.reply(command, None).await
}

/// What is an object registered with?
#[utoipa::path(get, path = "/v1/objects/{object}", tag = "Objects",
    params(("object" = String, Path, description = "`type:id`")),
    responses((status = 200, description = "The object", body = ObjectReply)))]
pub async fn get(caller: Caller, Segments(object): Segments<String>) -> Outcome {
    caller.answer(ObjectQuery { object: ObjectId::new(&object)? }).await
}

/// Remove an object with its edges and counts
#[utoipa::path(delete, path = "/v1/objects/{object}", tag = "Objects",
    params(("object" = String, Path, description = "`type:id`")),
    responses((status = 202, description = "The job that removes its edges", body = JobReply)))]
pub async fn delete(caller: Caller, Segments(object): Segments<String>) -> Outcome {
    caller.may(Permission::DeleteObject, None, None)?;
    let command = DeleteObject { object: ObjectId::new(&object)? };
    caller.begin(command).await
}
