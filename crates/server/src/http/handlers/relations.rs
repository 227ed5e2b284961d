//! Likes, bookmarks, favourites, reactions.

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use tally::core::bounded::BoundedMeta;
use tally::core::command::{Command, Decided, Relate, Toggle, Unrelate};
use tally::core::limits::PAGE_ITEMS_DEFAULT;
use tally::core::query::{CountAnswer, CountQuery, EdgeAnswer, EdgeQuery, ListAnswer, ListQuery};
use tally::core::reply::EdgeReply;
use tally::core::rows::Side;
use tally::core::{Name, ObjectId};
use utoipa::{IntoParams, ToSchema};

use super::{Outcome, answer};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::{Json, Posted};
use crate::http::problem::Problem;
use crate::http::reply;
use crate::http::request::{Caller, Params, Segments};
use crate::http::withheld::{Shown, withhold};

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

type Triple = (String, String, String);

fn names(relation: &str, object: &str) -> Result<(Name, ObjectId), Problem> {
    Ok((Name::new(relation)?, ObjectId::new(object)?))
}

/// The answer to a write, as far as the caller may read it.
async fn told(app: &App, caller: &Caller, decided: Decided) -> Outcome {
    let Decided { reply: Ok(reply), cost, replayed } = decided else { return reply::decided(StatusCode::OK, decided) };
    let mut shown = Shown::Whole(reply);
    withhold(app, caller, std::iter::once(&mut shown)).await;
    Ok(reply::with_headers(reply::json(StatusCode::OK, &shown), cost, replayed))
}

/// Make sure that an edge is there
///
/// Idempotent: the same request again answers `changed: false` and writes nothing.
#[utoipa::path(
    put, path = "/v1/relations/{relation}/{object}/{subject}", tag = "Relations",
    params(
        ("relation" = String, Path, description = "A declared relation, such as `like`"),
        ("object" = String, Path, description = "What is acted on, `type:id`"),
        ("subject" = String, Path, description = "Who acts; `me` for a user's own token"),
    ),
    request_body(content = Option<EdgeBody>),
    responses((status = 200, description = "The edge as it is now", body = EdgeReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn relate(
    State(app): State<App>,
    caller: Caller,
    Segments((relation, object, subject)): Segments<Triple>,
    Json(body): Json<EdgeBody>,
) -> Outcome {
    caller.signed_in()?;
    let ((relation, object), subject) = (names(&relation, &object)?, caller.subject(&subject)?);
    let (kind, meta) = (body.kind, body.meta.map(|meta| meta.0));
    let command = Relate { relation, object, subject, kind, meta };
    told(&app, &caller, caller.apply(&app, command, None).await?).await
}

/// Make sure that an edge is not there
#[utoipa::path(
    delete, path = "/v1/relations/{relation}/{object}/{subject}", tag = "Relations",
    params(
        ("relation" = String, Path, description = "A declared relation"),
        ("object" = String, Path, description = "What is acted on, `type:id`"),
        ("subject" = String, Path, description = "Who acts; `me` for a user's own token"),
    ),
    responses((status = 200, description = "The edge as it is now", body = EdgeReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn unrelate(
    State(app): State<App>,
    caller: Caller,
    Segments((relation, object, subject)): Segments<Triple>,
) -> Outcome {
    caller.signed_in()?;
    let ((relation, object), subject) = (names(&relation, &object)?, caller.subject(&subject)?);
    let command = Unrelate { relation, object, subject };
    told(&app, &caller, caller.apply(&app, command, None).await?).await
}

/// `subjects` is also a subject's id: writing to it is writing that edge.
pub async fn relate_subjects(
    state: State<App>,
    caller: Caller,
    Segments((relation, object)): Segments<(String, String)>,
    body: Json<EdgeBody>,
) -> Outcome {
    relate(state, caller, Segments((relation, object, "subjects".into())), body).await
}

/// The same for removing it.
pub async fn unrelate_subjects(
    state: State<App>,
    caller: Caller,
    Segments((relation, object)): Segments<(String, String)>,
) -> Outcome {
    unrelate(state, caller, Segments((relation, object, "subjects".into()))).await
}

/// Turn an edge into the opposite of what it is
///
/// A retried toggle flips back, so send an Idempotency-Key; better, say what you want with PUT or DELETE.
#[utoipa::path(
    post, path = "/v1/relations/{relation}/{object}/{subject}/toggle", tag = "Relations",
    params(
        ("relation" = String, Path, description = "A declared relation"),
        ("object" = String, Path, description = "What is acted on, `type:id`"),
        ("subject" = String, Path, description = "Who acts; `me` for a user's own token"),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 128 visible ASCII characters"),
    ),
    request_body(content = Option<EdgeBody>),
    responses((status = 200, description = "The edge as it is now", body = EdgeReply), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn toggle(
    State(app): State<App>,
    caller: Caller,
    Segments((relation, object, subject)): Segments<Triple>,
    posted: Posted,
) -> Outcome {
    caller.signed_in()?;
    let ((relation, object), subject) = (names(&relation, &object)?, caller.subject(&subject)?);
    caller.may(Permission::Toggle, Some(&subject), None)?;
    let (EdgeBody { kind, meta }, once) = posted.read(&app, &caller)?;
    let meta = meta.map(|meta| meta.0);
    let command = Command::from(Toggle { relation, object, subject, kind, meta });
    told(&app, &caller, caller.apply(&app, command, once).await?).await
}

/// Is this edge there?
#[utoipa::path(
    get, path = "/v1/relations/{relation}/{object}/{subject}", tag = "Relations",
    params(
        ("relation" = String, Path, description = "A declared relation"),
        ("object" = String, Path, description = "What is acted on, `type:id`"),
        ("subject" = String, Path, description = "Who acts; `me` for a user's own token"),
    ),
    responses((status = 200, description = "Whether it is", body = EdgeAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_edge(
    State(app): State<App>,
    caller: Caller,
    Segments((relation, object, subject)): Segments<Triple>,
) -> Outcome {
    caller.signed_in()?;
    let ((relation, object), subject) = (names(&relation, &object)?, caller.subject(&subject)?);
    answer(&app, &caller, EdgeQuery { relation, object, subject }).await
}

/// How many edges does this object have?
#[utoipa::path(
    get, path = "/v1/relations/{relation}/{object}", tag = "Relations",
    params(
        ("relation" = String, Path, description = "A declared relation"),
        ("object" = String, Path, description = "What is acted on, `type:id`"),
        Viewer,
    ),
    responses((status = 200, description = "The count", body = CountAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn read_count(
    State(app): State<App>,
    caller: Caller,
    Segments((relation, object)): Segments<(String, String)>,
    Params(Viewer { viewer }): Params<Viewer>,
) -> Outcome {
    caller.signed_in()?;
    let (relation, object) = names(&relation, &object)?;
    let viewer = match viewer {
        Some(text) => Some(caller.subject(&text)?),
        None => caller.own_subject().cloned(),
    };
    answer(&app, &caller, CountQuery { relation, object, viewer }).await
}

/// Who has edges to this object, newest first
#[utoipa::path(
    get, path = "/v1/relations/{relation}/{object}/subjects", tag = "Relations",
    params(
        ("relation" = String, Path, description = "A declared relation"),
        ("object" = String, Path, description = "What is acted on, `type:id`"),
        Page,
    ),
    responses((status = 200, description = "A page", body = ListAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn list_subjects(
    State(app): State<App>,
    caller: Caller,
    Segments((relation, object)): Segments<(String, String)>,
    Params(page): Params<Page>,
) -> Outcome {
    caller.signed_in()?;
    let (relation, object) = names(&relation, &object)?;
    list(&app, &caller, Side::Object, relation, object.as_str(), page).await
}

/// What does this subject have edges to, newest first
#[utoipa::path(
    get, path = "/v1/subjects/{subject}/relations/{relation}", tag = "Relations",
    params(
        ("subject" = String, Path, description = "Who acts; `me` for a user's own token"),
        ("relation" = String, Path, description = "A declared relation"),
        Page,
    ),
    responses((status = 200, description = "A page", body = ListAnswer), (status = "4XX", response = super::docs::ProblemResponse)),
)]
pub async fn list_objects(
    State(app): State<App>,
    caller: Caller,
    Segments((subject, relation)): Segments<(String, String)>,
    Params(page): Params<Page>,
) -> Outcome {
    caller.signed_in()?;
    let (relation, subject) = (Name::new(&relation)?, caller.subject(&subject)?);
    list(&app, &caller, Side::Subject, relation, subject.as_str(), page).await
}

async fn list(app: &App, caller: &Caller, side: Side, relation: Name, id: &str, page: Page) -> Outcome {
    let limit = page.limit.unwrap_or(PAGE_ITEMS_DEFAULT);
    answer(app, caller, ListQuery { side, relation, id: id.to_owned(), limit, cursor: page.cursor }).await
}
