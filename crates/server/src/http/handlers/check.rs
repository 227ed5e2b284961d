//! For proxies in front of a shop: is whoever asks inside?

use std::time::Instant;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::routing::any;
use tally::core::command::Beat;
use tally::core::query::{HolderAnswer, HolderQuery};
use tally::core::rows::TicketState;
use tally::core::{Code, Name};
use tally::engine::Together;
use utoipa_axum::router::OpenApiRouter;

use super::admissions::{signed, unsigned};
use super::tickets::with_ticket;
use crate::admission::token::{self, Admitted, ceil_s};
use crate::app::App;
use crate::auth::TOKEN_BYTES_MAX;
use crate::door::proxy::{Peer, Told};
use crate::http::back::percent_encode;
use crate::http::cookies;
use crate::http::problem::Problem;
use crate::http::request::{Caller, Outcome, listed};

const ADMISSION: HeaderName = HeaderName::from_static("tally-admission");
const SUBJECT: HeaderName = HeaderName::from_static("tally-subject");
const SEQ: HeaderName = HeaderName::from_static("tally-seq");

/// Its routes: any method, and any path below, since some proxies ask with what they were asked themselves.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().route("/v1/rooms/{room}/check", any(check)).route("/v1/rooms/{room}/check/{*rest}", any(check))
}

/// Whether whoever asks shows an admission that is good now.
async fn check(State(app): State<App>, Extension(peer): Extension<Peer>, uri: Uri, headers: HeaderMap) -> Outcome {
    let room = uri.path().split('/').nth(3).unwrap_or_default();
    let room = Name::new(room)?;
    let told = peer.told(&app.settings, &headers);
    let caller = Caller::nobody(&app);
    for shown in shown(&headers, &room) {
        let Some(admitted) = read(&app, shown, &room).await? else { continue };
        let Some(holder) = inside(&caller, &room, &admitted).await? else { continue };
        return pass(&caller, &told, &room, admitted, holder).await;
    }
    let denies = listed(uri.query().unwrap_or_default(), "deny").unwrap_or_default();
    let mut response = if denies.iter().any(|deny| deny == "302") {
        let place = HeaderValue::try_from(waiting_page(&room, &told)).map_err(|_| Problem::internal())?;
        (StatusCode::FOUND, [(header::LOCATION, place)]).into_response()
    } else {
        Problem::new(Code::Unauthenticated, "this needs an admission to the room").into_response()
    };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Every token that may be an admission.
fn shown<'a>(headers: &'a HeaderMap, room: &Name) -> Vec<&'a str> {
    let own = headers.get(ADMISSION).and_then(|value| value.to_str().ok());
    let cookie = cookies::find(headers, &cookies::admission(room));
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| crate::auth::bearer(value.as_bytes()));
    [own, cookie, bearer].into_iter().flatten().filter(|token| token.len() <= TOKEN_BYTES_MAX).collect()
}

/// What a token says, if it is an admission to this room that is good now.
async fn read(app: &App, token: &str, room: &Name) -> Result<Option<Admitted>, Problem> {
    let Some(kid) = token::kid(token) else { return Ok(None) };
    let key = app.admission.key(&app.tally, &kid).await.map_err(unsigned)?;
    Ok(key.and_then(|key| token::check(token, &key, room)))
}

/// The ticket behind an admission, while it is inside: whoever is done is out at once, whatever the token says.
async fn inside(caller: &Caller, room: &Name, admitted: &Admitted) -> Result<Option<HolderAnswer>, Problem> {
    let app = &caller.app;
    // Of several servers another may have ended it: only where there are no others is an answer kept for a moment.
    let is_shared = app.tally.engine().is_shared();
    let holder = match app.admission.held.look(room, admitted.seq) {
        Ok(holder) if !is_shared => Some(holder),
        Ok(_) => ask(caller, room, admitted).await?,
        Err(forgotten) => {
            let asked_at = Instant::now();
            let holder = ask(caller, room, admitted).await?;
            if let Some(holder) = holder.as_ref().filter(|_| !is_shared) {
                app.admission.held.note(room, admitted.seq, asked_at, holder, forgotten);
            }
            holder
        }
    };
    let is_same = |holder: &HolderAnswer| tally::core::room::seal::ticket_hash(&holder.ticket) == admitted.tid;
    // By the store's time, which several servers have in common; one that was kept is of this server's own store.
    let lasts = |holder: &HolderAnswer| is_shared || holder.until > app.tally.now();
    Ok(holder.filter(|holder| is_same(holder) && holder.state == TicketState::Admitted && lasts(holder)))
}

/// The ticket behind an admission, if there is one.
async fn ask(caller: &Caller, room: &Name, admitted: &Admitted) -> Result<Option<HolderAnswer>, Problem> {
    let query = HolderQuery { room: room.clone(), seq: admitted.seq, ticket_hash: admitted.tid.clone() };
    match caller.ask(&query).await {
        Ok(holder) => Ok(Some(holder)),
        Err(problem) if matches!(problem.code, Code::RoomNotFound | Code::TicketNotFound) => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Lets pass, and prolongs the admission where using it does.
async fn pass(caller: &Caller, told: &Told<'_>, room: &Name, admitted: Admitted, holder: HolderAnswer) -> Outcome {
    let app = &caller.app;
    let mut until = holder.until;
    if let Some(ttl_ms) = holder.renewed_ms
        && holder.left_ms <= ttl_ms / 2
    {
        let beat = Beat { room: room.clone(), ticket: holder.ticket.clone() };
        until = with_ticket(caller, beat).await?.facts.until;
        app.admission.held.forget(room, admitted.seq);
    }
    let mut response = StatusCode::OK.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(SEQ, HeaderValue::from(admitted.seq));
    // A subject may be any text, and a header is ASCII.
    if let Ok(subject) = HeaderValue::try_from(header_text(&admitted.sub)) {
        headers.insert(SUBJECT, subject);
    }
    if ceil_s(until) > admitted.exp {
        let fresh = admitted.until(until);
        let text = signed(app, &fresh, holder.since).await?;
        let left_ms = holder.left_ms + until.0.saturating_sub(holder.until.0);
        cookies::set(headers, told, &cookies::admission(room), &text, "/", left_ms.div_ceil(1_000));
    }
    Ok(response)
}

/// The waiting page, which leads back to what was asked for.
fn waiting_page(room: &Name, told: &Told<'_>) -> String {
    match told.original() {
        Some(original) => format!("/wait/{room}?return={}", percent_encode(original)),
        None => format!("/wait/{room}"),
    }
}

/// A text as a header can carry it: as it is, or percent-encoded where it is not plain.
fn header_text(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'%') {
        text.to_owned()
    } else {
        percent_encode(text)
    }
}
