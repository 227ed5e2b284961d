//! Around every request: a name, a time limit, a count, and a net under panics.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use axum::response::IntoResponse;
use futures_util::FutureExt;
use hyper::body::{Body as _, Incoming};
use tower::ServiceExt;

use super::body::late_body;
use super::problem::Problem;
use super::routes::resource;
use crate::app::App;
use crate::door::activity::{Activity, Serving};
use crate::door::answer::Answer;
use crate::door::memory::Room;
use crate::door::origin::Visit;
use crate::door::proxy::Peer;
use tally::core::Code;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Paths whose answers may take as long as they take.
const WITHOUT_TIME_LIMIT: [&str; 1] = ["/v1/backup"];

/// Answers one request of a connection.
pub async fn serve(
    app: App,
    router: Router,
    activity: Arc<Activity>,
    peer: Peer,
    mut request: Request<Incoming>,
) -> Result<Response<Answer>, Infallible> {
    let serving = Serving::begin(activity.clone());
    let started = Instant::now();
    let id = request_id(&app, request.headers().get(&REQUEST_ID));
    let method = method_name(request.method());
    let path = request.uri().path().to_owned();
    request.extensions_mut().insert(peer);
    let closes = request.version() < Version::HTTP_2;
    let room = (!request.body().is_end_stream()).then(|| Room::new(app.memory.clone()));
    if let Some(room) = &room {
        request.extensions_mut().insert(room.clone());
    }
    let visit = Visit::of(&app.settings, &request);
    let mut response = match admitted(&app, &visit, &request) {
        Some(answered) => answered,
        None => within_limits(&app, router, request, room.as_deref(), (&id, method, &path)).await,
    };
    if let Ok(visit) = visit {
        visit.stamp(response.headers_mut());
    }
    if closes && room.is_some_and(|room| !room.is_whole()) {
        // What is still to come would be taken for the next request.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        activity.set_unread();
    }
    counted(&app, &response, (&id, method, &path), started.elapsed());
    response.headers_mut().insert(REQUEST_ID, id);
    Ok(response.map(|body| Answer::new(body, serving)))
}

/// What is answered before anybody looks at what is asked.
fn admitted(app: &App, visit: &Result<Visit, Problem>, request: &Request<Incoming>) -> Option<Response<Body>> {
    let too_large = Problem::large_head(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    match visit {
        Err(refused) => Some(refused.clone().into_response()),
        // The library itself sees to it in HTTP/1.
        Ok(_) if request.version() >= Version::HTTP_2 && head_bytes(request) > app.settings.bounds.header_bytes_max => {
            Some(too_large.into_response())
        }
        Ok(visit) => visit.preflight(request).map(IntoResponse::into_response),
    }
}

/// About as many bytes as a head would have in HTTP/1.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>() + target
}

async fn within_limits(
    app: &App,
    router: Router,
    request: Request<Incoming>,
    room: Option<&Room>,
    (id, method, path): (&HeaderValue, &'static str, &str),
) -> Response<Body> {
    let limit = app.settings.bounds.request_timeout;
    let answering = AssertUnwindSafe(route(router, request)).catch_unwind();
    let outcome = if WITHOUT_TIME_LIMIT.contains(&path) {
        Ok(answering.await)
    } else {
        tokio::time::timeout(limit, answering).await
    };
    match outcome {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            tracing::error!(id = plain(id), method, path, "a handler panicked");
            Problem::internal().into_response()
        }
        Err(_) if room.is_some_and(Room::waits) => late_body(limit).into_response(),
        Err(_) => {
            let text = "the store did not answer in time; whether a write took effect is seen by reading, or by sending \
                        it again with the same Idempotency-Key";
            Problem::new(Code::StoreUnavailable, text).into_response()
        }
    }
}

/// Counts an answer and logs it.
fn counted(
    app: &App,
    response: &Response<Body>,
    (id, method, path): (&HeaderValue, &'static str, &str),
    took: Duration,
) {
    let status = response.status();
    app.metrics.request(method, resource(path), status.as_u16(), took);
    if let Some(code) = response.extensions().get::<Code>() {
        app.metrics.problem(*code);
    }
    let (id, took_us) = (plain(id), u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    if status.is_server_error() {
        tracing::warn!(id, method, path, status = status.as_u16(), took_us, "request failed");
    } else {
        tracing::debug!(id, method, path, status = status.as_u16(), took_us, "request");
    }
}

/// An id as it is written, without quotes around it.
fn plain(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or_default()
}

async fn route(router: Router, request: Request<Incoming>) -> Response<Body> {
    match router.oneshot(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The client's own id, where it is a short plain one, so that logs of both sides meet.
fn request_id(app: &App, sent: Option<&HeaderValue>) -> HeaderValue {
    let plain = sent.filter(|value| value.len() <= 64 && value.as_bytes().iter().all(u8::is_ascii_graphic));
    match plain {
        Some(value) => value.clone(),
        None => HeaderValue::try_from(app.next_request_id()).unwrap_or_else(|_| HeaderValue::from_static("0")),
    }
}

/// Methods are counted by name; there is no end of names that a client could make up.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::PUT => "PUT",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
