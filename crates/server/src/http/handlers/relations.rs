//! Likes, bookmarks, favourites, reactions.

use axum::http::StatusCode;
use axum::routing::put;
use serde::Deserialize;
use tally::core::bounded::BoundedMeta;
use tally::core::command::{Command, Decided, Once, Relate, Toggle, Unrelate};
use tally::core::limits::PAGE_ITEMS_DEFAULT;
use tally::core::query::{CountAnswer, CountQuery, EdgeAnswer, EdgeQuery, ListAnswer, ListQuery};
use tally::core::reply::EdgeReply;
use tally::core::rows::Side;
use tally::core::{Name, ObjectId, SubjectId};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Idempotent, tagged};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::{Json, Posted};
use crate::http::reply;
use crate::http::request::{Caller, Outcome, Pair, Params, Segments, Triple};
use crate::http::withheld::{Shown, withhold};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Relations", "Likes, reactions, bookmarks, favourites, follows")
        .routes(routes!(relate, unrelate, read_edge))
        .routes(routes!(toggle))
        .routes(routes!(read_count))
        .routes(routes!(list_subjects))
        .routes(routes!(list_objects))
        // `subjects` is also a subject's id: writing to it is writing that edge.
        .route("/v1/relations/{relation}/{object}/subjects", put(relate_subjects).delete(unrelate_subjects))
}

/// What may be said with an edge.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EdgeBody {
    /// What to attach, as the relation's shape declares.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    meta: Option<BoundedMeta>,
    /// Which kind, where the relation has `one_of`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    kind: Option<Name>,
}

/// Which page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Page {
    /// Items on the page.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Whose edge to look for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Viewer {
    /// A subject; a user's token stands for itself.
    viewer: Option<String>,
}

/// An edge.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path")]
struct Edge {
    /// A declared relation
    relation: String,
    /// What is acted on, `type:id`
    object: String,
    /// Who acts; `me` for a user's own token
    subject: String,
}

/// An object in a relation.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes the path")]
struct Acted {
    /// A declared relation
    relation: String,
    /// What is acted on, `type:id`
    object: String,
}

/// The answer to a write, as far as the caller may read it.
async fn told(caller: &Caller, command: impl Into<Command>, once: Option<Once>) -> Outcome {
    let decided = caller.apply(command, once).await?;
    let Decided { reply: Ok(reply), cost, replayed } = decided else { return reply::decided(StatusCode::OK, decided) };
    let mut shown = Shown::Whole(reply);
    withhold(caller, std::iter::once(&mut shown)).await;
    Ok(reply::with_headers(reply::json(StatusCode::OK, &shown), cost, replayed))
}

/// Make sure that an edge is there
///
/// Idempotent: the same request again answers `changed: false` and writes nothing.
#[utoipa::path(put, path = "/v1/relations/{relation}/{object}/{subject}", tag = "Relations",
    params(
        ("relation" = String, Path, description = "A declared relation, such as `like`"),
        ("object" = String, Path, description = "What is acted on, `type:id`"),
        ("subject" = String, Path, description = "Who acts; `me` for a user's own token"),
    ),
    request_body(content = Option<EdgeBody>), responses((status = 200, description = "The edge as it is now", body = EdgeReply)))]
pub async fn relate(caller: Caller, Segments(path): Segments<Triple>, Json(body): Json<EdgeBody>) -> Outcome {
    let (relation, object, subject) = caller.three(&path)?;
    let (kind, meta) = (body.kind, body.meta.map(|meta| meta.0));
    told(&caller, Relate { relation, object, subject, kind, meta }, None).await
}

/// Make sure that an edge is not there
#[utoipa::path(delete, path = "/v1/relations/{relation}/{object}/{subject}", tag = "Relations", params(Edge),
    responses((status = 200, description = "The edge as it is now", body = EdgeReply)))]
pub async fn unrelate(caller: Caller, Segments(path): Segments<Triple>) -> Outcome {
    let (relation, object, subject) = caller.three(&path)?;
    told(&caller, Unrelate { relation, object, subject }, None).await
}

/// Makes sure that the edge of a subject called `subjects` is there.
pub async fn relate_subjects(
    caller: Caller,
    Segments((relation, object)): Segments<Pair>,
    body: Json<EdgeBody>,
) -> Outcome {
    relate(caller, Segments((relation, object, "subjects".into())), body).await
}

/// The same for removing it.
pub async fn unrelate_subjects(caller: Caller, Segments((relation, object)): Segments<Pair>) -> Outcome {
    unrelate(caller, Segments((relation, object, "subjects".into()))).await
}

/// Turn an edge into the opposite of what it is
///
/// A retried toggle flips back, so send an Idempotency-Key; better, say what you want with PUT or DELETE.
#[utoipa::path(post, path = "/v1/relations/{relation}/{object}/{subject}/toggle", tag = "Relations",
    params(Edge, Idempotent),
    request_body(content = Option<EdgeBody>), responses((status = 200, description = "The edge as it is now", body = EdgeReply)))]
pub async fn toggle(caller: Caller, Segments(path): Segments<Triple>, posted: Posted) -> Outcome {
    let (relation, object, subject) = caller.three(&path)?;
    caller.may(Permission::Toggle, Some(&subject), None)?;
    let (EdgeBody { kind, meta }, once) = posted.read(&caller)?;
    let meta = meta.map(|meta| meta.0);
    told(&caller, Toggle { relation, object, subject, kind, meta }, once).await
}

/// Is this edge there?
#[utoipa::path(get, path = "/v1/relations/{relation}/{object}/{subject}", tag = "Relations", params(Edge),
    responses((status = 200, description = "Whether it is", body = EdgeAnswer)))]
pub async fn read_edge(caller: Caller, Segments(path): Segments<Triple>) -> Outcome {
    let (relation, object, subject) = caller.three(&path)?;
    caller.answer(EdgeQuery { relation, object, subject }).await
}

/// How many edges does this object have?
#[utoipa::path(get, path = "/v1/relations/{relation}/{object}", tag = "Relations", params(Acted, Viewer),
    responses((status = 200, description = "The count", body = CountAnswer)))]
pub async fn read_count(caller: Caller, Segments(path): Segments<Pair>, Params(asked): Params<Viewer>) -> Outcome {
    let (relation, object) = caller.two(&path)?;
    let viewer = caller.viewer(asked.viewer.as_deref())?;
    caller.answer(CountQuery { relation, object, viewer }).await
}

/// Who has edges to this object, newest first
#[utoipa::path(get, path = "/v1/relations/{relation}/{object}/subjects", tag = "Relations", params(Acted, Page),
    responses((status = 200, description = "A page", body = ListAnswer)))]
pub async fn list_subjects(caller: Caller, Segments(path): Segments<Pair>, Params(page): Params<Page>) -> Outcome {
    let (relation, object): (Name, ObjectId) = caller.two(&path)?;
    list(&caller, Side::Object, relation, object.as_str(), page).await
}

/// What does this subject have edges to, newest first
#[utoipa::path(get, path = "/v1/subjects/{subject}/relations/{relation}", tag = "Relations",
    params(
        ("subject" = String, Path, description = "Who acts; `me` for a user's own token"),
        ("relation" = String, Path, description = "A declared relation"),
        Page,
    ),
    responses((status = 200, description = "A page", body = ListAnswer)))]
pub async fn list_objects(caller: Caller, Segments(path): Segments<Pair>, Params(page): Params<Page>) -> Outcome {
    let (subject, relation): (SubjectId, Name) = caller.two(&path)?;
    list(&caller, Side::Subject, relation, subject.as_str(), page).await
}

async fn list(caller: &Caller, side: Side, relation: Name, id: &str, page: Page) -> Outcome {
    let limit = page.limit.unwrap_or(PAGE_ITEMS_DEFAULT);
    caller.answer(ListQuery { side, relation, id: id.to_owned(), limit, cursor: page.cursor }).await
}
