//! Waiting rooms: made, looked at, closed, and opened by hand.

use axum::http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use tally::core::command::{Admit, DeleteRoom, Once};
use tally::core::hash::digest_text;
use tally::core::query::{MinutesAnswer, MinutesQuery, RoomAnswer, RoomQuery, RoomsAnswer, RoomsQuery};
use tally::core::reply::{AdmitReply, Reply, RoomReply};
use tally::core::room::{ADMIT_MAX, JoinBy, RoomSettings};
use tally::core::rows::ReplayKey;
use tally::core::{Name, Timestamp};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Idempotent, tagged};
use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::body::{Json, Posted};
use crate::http::problem::Problem;
use crate::http::reply;
use crate::http::request::{Caller, Outcome, Params, Segments};
use crate::http::visitor::Visitor;

/// Most that are let in by hand with one call.
const ADMIT_CALL_MAX: u32 = 100_000;
/// Bytes of a room's secrets.
const SECRET_BYTES: usize = 32;

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Rooms", "Who is next?")
        .routes(routes!(put_room, read_room, delete_room))
        .routes(routes!(list_rooms))
        .routes(routes!(minutes))
        .routes(routes!(admit))
}

/// A fresh secret, as text.
pub(super) fn secret() -> Result<String, Problem> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "there is no randomness");
        Problem::internal()
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Make a room, or change it
///
/// The body is the whole of its settings: what is left out has its default. A change takes effect at once.
#[utoipa::path(put, path = "/v1/rooms/{room}", tag = "Rooms",
    params(("room" = String, Path, description = "The room: a letter, then letters, digits, `_` and `-`")),
    request_body(content = Option<RoomSettings>),
    responses(
        (status = 200, description = "How it is set up now", body = RoomReply),
        (status = 201, description = "It is new", body = RoomReply),
    ))]
pub async fn put_room(caller: Caller, Segments(room): Segments<String>, Json(settings): Json<RoomSettings>) -> Outcome {
    caller.may(Permission::ManageRoom, None, None)?;
    let room = Name::new(&room)?;
    settings.check(&room)?;
    let room = caller.app.tally.put_room(&room, settings).await?;
    Ok(reply::json(if room.created { StatusCode::CREATED } else { StatusCode::OK }, &room))
}

/// How is a room?
///
/// Without a credential for rooms that anybody may join. It may be kept for a second.
#[utoipa::path(get, path = "/v1/rooms/{room}", tag = "Rooms",
    params(("room" = String, Path, description = "The room")),
    responses((status = 200, description = "The room", body = RoomAnswer)))]
pub async fn read_room(visitor: Visitor, Segments(room): Segments<String>) -> Outcome {
    let answer = visitor.caller.ask(&RoomQuery { room: Name::new(&room)? }).await?;
    let kept = match answer.settings.join {
        JoinBy::Any => "public, max-age=1",
        JoinBy::Token | JoinBy::Service => "private, max-age=1",
    };
    let mut response = reply::json(StatusCode::OK, &answer);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    Ok(response)
}

/// Close a room for good
///
/// Its tickets are forgotten.
#[utoipa::path(delete, path = "/v1/rooms/{room}", tag = "Rooms",
    params(("room" = String, Path, description = "The room")),
    responses((status = 200, description = "Whether there was one", body = Object)))]
pub async fn delete_room(caller: Caller, Segments(room): Segments<String>) -> Outcome {
    let room = Name::new(&room)?;
    let answer = caller.reply(DeleteRoom { room: room.clone() }, None).await;
    caller.app.admission.held.forget_room(&room);
    answer
}

/// Which rooms are there?
#[utoipa::path(get, path = "/v1/rooms", tag = "Rooms",
    responses((status = 200, description = "The rooms, by name", body = RoomsAnswer)))]
pub async fn list_rooms(caller: Caller) -> Outcome {
    caller.answer(RoomsQuery).await
}

/// Which minutes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MinutesParams {
    /// From when on. Default: an hour before `to`.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    /// Until when; at most a day after `from`. Default: now.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
}

/// How were a room's minutes?
///
/// Those in which anything happened, oldest first; they are kept for a week.
#[utoipa::path(get, path = "/v1/rooms/{room}/minutes", tag = "Rooms",
    params(("room" = String, Path, description = "The room"), MinutesParams),
    responses((status = 200, description = "The minutes", body = MinutesAnswer)))]
pub async fn minutes(
    caller: Caller,
    Segments(room): Segments<String>,
    Params(MinutesParams { from, to }): Params<MinutesParams>,
) -> Outcome {
    caller.answer(MinutesQuery { room: Name::new(&room)?, from, to }).await
}

/// How many to let in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdmitBody {
    #[schema(minimum = 1, maximum = 100_000)]
    count: u32,
}

/// Let some in by hand
///
/// Beyond the rate, and within the capacity. With an Idempotency-Key a retry lets in no more.
#[utoipa::path(post, path = "/v1/rooms/{room}/admit", tag = "Rooms",
    params(("room" = String, Path, description = "The room"), Idempotent),
    request_body(content = AdmitBody),
    responses((status = 200, description = "Who was let in", body = AdmitReply)))]
pub async fn admit(caller: Caller, Segments(room): Segments<String>, posted: Posted) -> Outcome {
    caller.may(Permission::ManageRoom, None, None)?;
    let room = Name::new(&room)?;
    let (AdmitBody { count }, once): (AdmitBody, _) = posted.read(&caller)?;
    if !(1..=ADMIT_CALL_MAX).contains(&count) {
        return Err(Problem::bad_request(format!("count is between 1 and {ADMIT_CALL_MAX}")));
    }
    let mut left = count;
    let mut all: Option<AdmitReply> = None;
    let (mut cost, mut replayed) = (Default::default(), true);
    for part in 0.. {
        let step = left.min(ADMIT_MAX);
        let command = Admit { room: room.clone(), count: step };
        let decided = caller.apply(command, once.as_ref().map(|once| part_of(once, part))).await?;
        let Reply::Admit(reply) = decided.reply? else { return Err(Problem::internal()) };
        let admitted = reply.admitted;
        all = Some(AdmitReply { admitted: admitted + all.map_or(0, |all| all.admitted), ..reply });
        (cost, replayed) = (decided.cost, replayed && decided.replayed);
        left -= step;
        if left == 0 || admitted < u64::from(step) {
            break;
        }
    }
    Ok(reply::with_headers(reply::json(StatusCode::OK, &all), cost, replayed))
}

/// The key of one of several commands of a call: each is remembered by itself, so that a call which was cut goes on where it was.
fn part_of(once: &Once, part: u32) -> Once {
    if part == 0 {
        return once.clone();
    }
    let ReplayKey { caller, key } = &once.key;
    let key = digest_text(&[key, &part.to_string()]);
    Once { key: ReplayKey { caller: caller.clone(), key }, fields: once.fields.clone() }
}
