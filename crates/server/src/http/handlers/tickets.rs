//! Tickets of a waiting room: taken, watched, claimed, given up. Whoever has a ticket needs no other credential.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tally::core::Name;
use tally::core::command::{Beat, Finish, Leave};
use tally::core::reply::{Reply, TicketReply};
use tally::core::room::Join;
use tally::{AnyEngine, TicketWatch};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::rooms::secret;
use super::tagged;
use crate::app::App;
use crate::http::body::Posted;
use crate::http::problem::Problem;
use crate::http::reply::{self, REPLAYED};
use crate::http::request::{Caller, Outcome, Pair, Params, Segments};
use crate::http::visitor::Visitor;

/// A comment now and then keeps the connection from being taken for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Rooms", "Who is next?")
        .routes(routes!(join))
        .routes(routes!(read_ticket, leave))
        .routes(routes!(heartbeat))
        .routes(routes!(done))
        .routes(routes!(events))
}

/// Who joins.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinBody {
    /// Who: a server names anybody, a user is itself. Left out by a server, somebody is made up.
    #[serde(default)]
    subject: Option<String>,
    /// What the caller calls the ticket, 1 to 256 bytes: the same again is the same ticket. In a browser at least 128 random
    /// bits. Default: the Idempotency-Key, where there is one.
    #[serde(default)]
    token: Option<String>,
}

/// Take a ticket
///
/// The same subject and token again gives the same ticket, with its position now.
#[utoipa::path(post, path = "/v1/rooms/{room}/tickets", tag = "Rooms",
    params(("room" = String, Path, description = "The room"), super::Idempotent),
    request_body(content = Option<JoinBody>),
    responses(
        (status = 201, description = "A new ticket", body = TicketReply),
        (status = 200, description = "The ticket that there is", body = TicketReply),
    ))]
pub async fn join(visitor: Visitor, Segments(room): Segments<String>, posted: Posted) -> Outcome {
    let caller = &visitor.caller;
    let JoinBody { subject, token } = posted.body()?;
    let subject = match subject {
        Some(subject) => Some(caller.subject(&subject)?),
        None => caller.own_subject().cloned(),
    };
    // The ticket's own record is what remembers, and for longer than answers are.
    let token = match (token, posted.key()?) {
        (Some(token), _) => Some(token),
        (None, Some(key)) => Some(visitor.token(key)),
        (None, None) => None,
    };
    let (fresh, ip) = (secret()?, Some(visitor.address.to_string()));
    let ticket = caller.join(Join { room: Name::new(&room)?, subject, token, fresh, ip }).await?;
    let status = if ticket.facts.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = told(status, &ticket);
    if !ticket.facts.is_new && posted.key()?.is_some() {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// A ticket as an answer. Nobody keeps it: it is a credential.
pub(super) fn told(status: StatusCode, ticket: &impl Serialize) -> Response {
    let mut response = reply::json(status, ticket);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What has been seen.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SeenParams {
    /// The room's version that the asker has seen: the answer is no older.
    version: Option<i64>,
}

/// How is a ticket?
///
/// A pure read: it keeps nothing alive and uses nothing up.
#[utoipa::path(get, path = "/v1/rooms/{room}/tickets/{ticket}", tag = "Rooms",
    params(
        ("room" = String, Path, description = "The room"),
        ("ticket" = String, Path, description = "The ticket"),
        SeenParams,
    ),
    responses((status = 200, description = "The ticket", body = TicketReply)))]
pub async fn read_ticket(
    visitor: Visitor,
    Segments((room, ticket)): Segments<Pair>,
    Params(SeenParams { version }): Params<SeenParams>,
) -> Outcome {
    let room = Name::new(&room)?;
    Ok(told(StatusCode::OK, &visitor.caller.ticket(&room, &ticket, version).await?))
}

/// Has something done with a ticket.
pub(super) async fn with_ticket(
    caller: &Caller,
    command: impl Into<tally::core::Command>,
) -> Result<TicketReply, Problem> {
    let reply = caller.apply(command, None).await?.reply?;
    if let Reply::Ticket(ticket) = reply { Ok(ticket) } else { Err(Problem::internal()) }
}

/// Has something done with a ticket after which it is over, at once for whoever asks this server.
async fn end(caller: &Caller, command: impl Into<tally::core::Command>) -> Outcome {
    let ticket = with_ticket(caller, command).await?;
    caller.app.admission.held.forget(&ticket.room, ticket.seq);
    Ok(told(StatusCode::OK, &ticket))
}

/// Give a ticket up
#[utoipa::path(delete, path = "/v1/rooms/{room}/tickets/{ticket}", tag = "Rooms",
    params(("room" = String, Path, description = "The room"), ("ticket" = String, Path, description = "The ticket")),
    responses((status = 200, description = "The ticket", body = TicketReply)))]
pub async fn leave(visitor: Visitor, Segments((room, ticket)): Segments<Pair>) -> Outcome {
    end(&visitor.caller, Leave { room: Name::new(&room)?, ticket }).await
}

/// Stay in the queue
///
/// Without it, or an open event stream, a ticket is given up after `idle_ttl_ms`.
#[utoipa::path(post, path = "/v1/rooms/{room}/tickets/{ticket}/heartbeat", tag = "Rooms",
    params(("room" = String, Path, description = "The room"), ("ticket" = String, Path, description = "The ticket")),
    responses((status = 200, description = "The ticket", body = TicketReply)))]
pub async fn heartbeat(visitor: Visitor, Segments((room, ticket)): Segments<Pair>) -> Outcome {
    let beat = Beat { room: Name::new(&room)?, ticket };
    Ok(told(StatusCode::OK, &with_ticket(&visitor.caller, beat).await?))
}

/// Be done
///
/// Whoever waits has the place at once, and `check` refuses the admission from now on.
#[utoipa::path(post, path = "/v1/rooms/{room}/tickets/{ticket}/done", tag = "Rooms",
    params(("room" = String, Path, description = "The room"), ("ticket" = String, Path, description = "The ticket")),
    responses((status = 200, description = "The ticket", body = TicketReply)))]
pub async fn done(visitor: Visitor, Segments((room, ticket)): Segments<Pair>) -> Outcome {
    end(&visitor.caller, Finish { room: Name::new(&room)?, ticket }).await
}

/// Follow a ticket
///
/// An event `ticket` at first and then whenever it has changed, at most once a second. The stream keeps the ticket alive and ends
/// when the ticket is over.
#[utoipa::path(get, path = "/v1/rooms/{room}/tickets/{ticket}/events", tag = "Rooms",
    params(("room" = String, Path, description = "The room"), ("ticket" = String, Path, description = "The ticket")),
    responses((status = 200, description = "Server-Sent Events", body = String, content_type = "text/event-stream")))]
pub async fn events(visitor: Visitor, Segments((room, ticket)): Segments<Pair>) -> Outcome {
    let watch = visitor.caller.watch_ticket(&Name::new(&room)?, &ticket).await?;
    Ok(stream_of(&visitor.caller.app, watch, |ticket| serde_json::to_string(ticket).unwrap_or_default()))
}

/// A ticket as it changes, each time as this shows it.
pub(super) fn stream_of(app: &App, watch: TicketWatch<AnyEngine>, show: fn(&TicketReply) -> String) -> Response {
    let stopping = app.stopping.subscribe();
    let events = stream::unfold((watch, stopping), move |(mut watch, mut stopping)| async move {
        let event = tokio::select! {
            next = watch.next() => match next? {
                Ok(ticket) => format!("event: ticket\ndata: {}\n\n", show(&ticket)),
                // Whoever follows asks again, and is told why.
                Err(_) => return None,
            },
            () = tokio::time::sleep(KEEP_ALIVE) => ":\n\n".to_owned(),
            _ = stopping.wait_for(|stopping| *stopping) => return None,
        };
        Some((Ok::<_, Infallible>(Bytes::from(event)), (watch, stopping)))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Body::from_stream(events)).into_response()
}
