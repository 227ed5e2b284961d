//! The waiting page. A proxy serves it under the shop's own host, so all that it needs is below `/wait/`, and the ticket is in a
//! cookie that no script reads.

mod page;
mod words;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use tally::core::command::Beat;
use tally::core::query::{RoomAnswer, RoomQuery};
use tally::core::reply::TicketReply;
use tally::core::room::Join;
use tally::core::rows::TicketState;
use tally::core::{Code, Name};
use utoipa_axum::router::OpenApiRouter;

use self::page::Page;
use self::words::{Words, spoken};
use super::admissions::claimed;
use super::rooms::secret;
use super::tickets::{stream_of, told as answered, with_ticket};
use crate::app::App;
use crate::door::proxy::{Peer, Told};
use crate::http::back::{allowed, percent_encode};
use crate::http::cookies;
use crate::http::problem::Problem;
use crate::http::request::{Caller, Outcome, Params, Segments};

/// How long a browser keeps a ticket: a place is kept for a day, and for another it is told what became of it.
const COOKIE_S: u64 = 2 * 86_400;

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .route("/wait/{room}", get(wait))
        .route("/wait/{room}/status", get(status))
        .route("/wait/{room}/events", get(events))
}

/// What the address of the page says.
#[derive(Debug, Deserialize)]
struct WaitParams {
    /// Where to go in the end.
    #[serde(rename = "return")]
    back: Option<String>,
    /// Whether to join again where the last ticket is over.
    again: Option<String>,
}

/// One look at the page.
struct Look<'a> {
    caller: Caller,
    told: Told<'a>,
    headers: &'a HeaderMap,
    words: &'static Words,
    room: Name,
    wants_again: bool,
}

/// A ticket that waits in a browser, with how many were before it at first.
struct Held {
    ticket: TicketReply,
    first_ahead: u64,
}

async fn wait(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    Segments(room): Segments<String>,
    Params(params): Params<WaitParams>,
    headers: HeaderMap,
) -> Outcome {
    let (caller, told, words) = (Caller::nobody(&app), peer.told(&app.settings, &headers), spoken(&headers));
    let plain = |status| Page { words, status, own: "" };
    let Ok(room) = Name::new(&room) else { return plain(StatusCode::NOT_FOUND).saying(words.missing, None) };
    let answer = match caller.ask(&RoomQuery { room: room.clone() }).await {
        Ok(answer) => answer,
        // Whether there is such a room is not told to everybody.
        Err(problem) if matches!(problem.code, Code::Unauthenticated | Code::RoomNotFound) => {
            return plain(StatusCode::FORBIDDEN).saying(words.elsewhere, None);
        }
        Err(problem) => return plain(problem.status()).trying(words.busy),
    };
    let back = params.back.as_deref().and_then(|back| allowed(back, told.host(), &answer.settings.return_hosts));
    let look = Look { caller, told, headers: &headers, words, room, wants_again: params.again.is_some() };
    look.show(&answer, back).await
}

impl Look<'_> {
    async fn show(&self, room: &RoomAnswer, back: Option<&str>) -> Outcome {
        let words = self.words;
        let own = match back {
            Some(back) => format!("/wait/{}?return={}", room.room, percent_encode(back)),
            None => format!("/wait/{}", room.room),
        };
        let page = |status| Page { words, status, own: &own };
        let held = match self.ticket().await {
            Ok(held) => held,
            Err(problem) if problem.code == Code::RoomClosed => {
                return page(StatusCode::CONFLICT).saying(words.closed, None);
            }
            Err(problem) => return page(problem.status()).trying(words.busy),
        };
        let mut response = match held.ticket.state {
            TicketState::BeforeOpen | TicketState::Waiting => {
                page(StatusCode::OK).waiting(&held.ticket, held.first_ahead)?
            }
            TicketState::Ready | TicketState::Admitted => self.enter(&held, back, &page).await?,
            TicketState::Done | TicketState::Left | TicketState::Expired => {
                let again = format!("{own}{}again=1", if back.is_some() { '&' } else { '?' });
                page(StatusCode::OK).saying(words.over, Some(&again))?
            }
        };
        let (name, path) = (cookies::ticket(&self.room), format!("/wait/{}", self.room));
        let value = format!("{}.{}", held.ticket.ticket, held.first_ahead);
        cookies::set(response.headers_mut(), &self.told, &name, &value, &path, COOKIE_S);
        Ok(response)
    }

    /// The ticket of this browser, which is kept alive by looking at it; a new one where there is none.
    async fn ticket(&self) -> Result<Held, Problem> {
        if let Some((ticket, first_ahead)) = kept(self.headers, &self.room) {
            let beat = Beat { room: self.room.clone(), ticket: ticket.to_owned() };
            match with_ticket(&self.caller, beat).await {
                Ok(ticket) if ticket.state.is_over() && self.wants_again => {}
                Ok(ticket) => return Ok(Held { ticket, first_ahead }),
                Err(problem) if problem.code == Code::TicketNotFound => {}
                Err(problem) => return Err(problem),
            }
        }
        let (token, fresh, ip) = (Some(secret()?), secret()?, Some(self.told.address().to_string()));
        let ticket = self.caller.join(Join { room: self.room.clone(), subject: None, token, fresh, ip }).await?;
        let first_ahead = ticket.ahead.unwrap_or(0);
        Ok(Held { ticket, first_ahead })
    }

    /// Claims the ticket, and leads to where it was for.
    async fn enter<'p>(
        &self,
        held: &Held,
        back: Option<&str>,
        page: &impl Fn(StatusCode) -> Page<'p>,
    ) -> Result<Response, Problem> {
        let claim = match claimed(&self.caller, self.room.clone(), held.ticket.ticket.clone()).await {
            Ok(claim) => claim,
            // Its time ran out just now, and the next look says so.
            Err(problem) => return page(problem.status()).trying(self.words.busy),
        };
        let mut response = match back.and_then(|back| HeaderValue::try_from(back).ok()) {
            Some(back) => {
                let headers = [(header::LOCATION, back), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
                (StatusCode::SEE_OTHER, headers).into_response()
            }
            None => page(StatusCode::OK).saying(self.words.inside, None)?,
        };
        let name = cookies::admission(&self.room);
        cookies::set(response.headers_mut(), &self.told, &name, &claim.admission, "/", claim.seconds_left);
        Ok(response)
    }
}

/// The ticket in a browser's cookie, and how many were before it at first.
fn kept<'a>(headers: &'a HeaderMap, room: &Name) -> Option<(&'a str, u64)> {
    let value = cookies::find(headers, &cookies::ticket(room))?;
    let (ticket, first_ahead) = value.split_once('.')?;
    Some((ticket, first_ahead.parse().ok()?))
}

/// What the page's script is told of a ticket: not the ticket itself.
#[derive(Serialize)]
struct Shown {
    state: TicketState,
    position: Option<u64>,
    ahead: Option<u64>,
    eta_ms: Option<u64>,
    eta_range_ms: Option<[u64; 2]>,
    poll_after_ms: u64,
}

impl From<&TicketReply> for Shown {
    fn from(ticket: &TicketReply) -> Self {
        let TicketReply { state, position, ahead, eta_ms, eta_range_ms, poll_after_ms, .. } = *ticket;
        Self { state, position, ahead, eta_ms, eta_range_ms, poll_after_ms }
    }
}

fn held_ticket(headers: &HeaderMap, room: &Name) -> Result<String, Problem> {
    let lost = || Problem::new(Code::TicketNotFound, "this browser has no ticket of this room");
    kept(headers, room).map(|(ticket, _)| ticket.to_owned()).ok_or_else(lost)
}

/// How the browser's ticket is. Asking keeps it alive.
async fn status(State(app): State<App>, Segments(room): Segments<String>, headers: HeaderMap) -> Outcome {
    let room = Name::new(&room)?;
    let ticket = held_ticket(&headers, &room)?;
    let ticket = with_ticket(&Caller::nobody(&app), Beat { room, ticket }).await?;
    Ok(answered(StatusCode::OK, &Shown::from(&ticket)))
}

/// The browser's ticket as it changes.
async fn events(State(app): State<App>, Segments(room): Segments<String>, headers: HeaderMap) -> Outcome {
    let room = Name::new(&room)?;
    let ticket = held_ticket(&headers, &room)?;
    let watch = Caller::nobody(&app).watch_ticket(&room, &ticket).await?;
    Ok(stream_of(&app, watch, |ticket| serde_json::to_string(&Shown::from(ticket)).unwrap_or_default()))
}
