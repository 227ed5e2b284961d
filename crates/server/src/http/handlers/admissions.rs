//! Admissions: claimed with a ticket, checked offline with the public keys.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use tally::core::command::Claim;
use tally::core::{Code, Name, SubjectId, Timestamp};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::tickets::{told, with_ticket};
use crate::admission::AdmissionError;
use crate::admission::token::Admitted;
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::Json;
use crate::http::problem::Problem;
use crate::http::reply;
use crate::http::request::{Caller, Outcome, Pair, Segments};
use crate::http::visitor::Visitor;

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(claim)).routes(routes!(key_set)).routes(routes!(rotate))
}

/// An admission.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClaimReply {
    /// The room.
    #[schema(value_type = String)]
    pub room: Name,
    /// The ticket.
    pub ticket: String,
    /// Who was let in.
    #[schema(value_type = String)]
    pub subject: SubjectId,
    /// The ticket's number.
    pub seq: u64,
    /// `ADMITTED`.
    state: &'static str,
    /// A token that says so, to be checked with `/.well-known/jwks.json`, or by `check`.
    pub admission: String,
    /// The admission's own id.
    jti: String,
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// How many seconds that is from now.
    #[serde(skip)]
    pub seconds_left: u64,
}

/// Claims a ticket and signs its admission.
pub(super) async fn claimed(caller: &Caller, room: Name, ticket: String) -> Result<ClaimReply, Problem> {
    let ticket = with_ticket(caller, Claim { room, ticket }).await?;
    let admitted = Admitted::of(&ticket);
    let admission = signed(&caller.app, &admitted, ticket.facts.since).await?;
    Ok(ClaimReply {
        jti: ticket.jti(),
        expires_at: ticket.facts.until,
        room: ticket.room,
        ticket: ticket.ticket,
        subject: ticket.subject,
        seq: ticket.seq,
        state: "ADMITTED",
        admission,
        seconds_left: ticket.facts.until.0.saturating_sub(ticket.facts.now.0).div_ceil(1_000),
    })
}

/// The text of an admission.
pub(super) async fn signed(app: &App, admitted: &Admitted, since: Timestamp) -> Result<String, Problem> {
    let key = app.admission.signing(&app.tally, since).await.map_err(unsigned)?;
    admitted.sign(&key).map_err(|error| unsigned(AdmissionError::Key(error)))
}

/// What is said where there is no key: what is wrong with it is for the log.
pub(super) fn unsigned(error: AdmissionError) -> Problem {
    match error {
        AdmissionError::Store(error) => error.into(),
        AdmissionError::Key(why) => {
            tracing::error!(why, "an admission could not be signed or checked");
            Problem::internal()
        }
    }
}

/// Go in
///
/// The same admission again, however often it is claimed. 409 `not_ready` while it waits, 410 `ticket_gone` when it is over.
#[utoipa::path(post, path = "/v1/rooms/{room}/tickets/{ticket}/claim", tag = "Rooms",
    params(("room" = String, Path, description = "The room"), ("ticket" = String, Path, description = "The ticket")),
    responses((status = 200, description = "The admission", body = ClaimReply)))]
pub async fn claim(visitor: Visitor, Segments((room, ticket)): Segments<Pair>) -> Outcome {
    Ok(told(StatusCode::OK, &claimed(&visitor.caller, Name::new(&room)?, ticket).await?))
}

/// The keys that admissions are checked with
///
/// A JSON Web Key Set. A new key is in it for ten minutes before it signs.
#[utoipa::path(get, path = "/.well-known/jwks.json", tag = "Rooms", security(()),
    responses((status = 200, description = "The public keys", body = Object)))]
pub async fn key_set(State(app): State<App>) -> Outcome {
    let keys = app.admission.key_set(&app.tally).await.map_err(unsigned)?;
    let mut response = reply::json(StatusCode::OK, &keys);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    Ok(response)
}

/// How to replace the key.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateBody {
    /// The new key signs at once and all older ones are forgotten, with every admission that they signed: for a key that has
    /// leaked.
    #[serde(default)]
    at_once: bool,
}

/// Replace the key that signs admissions
///
/// The new one signs ten minutes later, when whoever checks admissions has seen it; what the older one signed stays good.
#[utoipa::path(post, path = "/v1/admission/rotate", tag = "Rooms",
    request_body(content = Option<RotateBody>), responses((status = 200, description = "The public keys", body = Object)))]
pub async fn rotate(caller: Caller, Json(body): Json<RotateBody>) -> Outcome {
    caller.may(Permission::ManageKeys, None, None)?;
    let app = &caller.app;
    if app.admission.is_of_file() {
        let text = "the key is the file of admission.signing_key_file: replace that, on every server";
        return Err(Problem::new(Code::Conflict, text));
    }
    app.admission.rotate(&app.tally, body.at_once).await.map_err(unsigned)?;
    Ok(reply::json(StatusCode::OK, &app.admission.key_set(&app.tally).await.map_err(unsigned)?))
}
