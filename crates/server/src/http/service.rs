//! Around every request: a name, a time limit, a count, and a net under panics.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, Response};
use axum::response::IntoResponse;
use futures_util::FutureExt;
use hyper::body::Incoming;
use tower::ServiceExt;

use super::problem::{Code, Problem};
use crate::app::App;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Paths whose answers may take as long as they take.
const WITHOUT_TIME_LIMIT: [&str; 1] = ["/v1/backup"];

/// Answers one request.
pub async fn serve(app: App, router: Router, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let started = Instant::now();
    let id = request_id(&app, request.headers().get(&REQUEST_ID));
    let method = method_name(request.method());
    let path = request.uri().path();
    let limited = !WITHOUT_TIME_LIMIT.contains(&path);
    let path = path.to_owned();
    let answering = AssertUnwindSafe(route(router, request)).catch_unwind();
    let outcome = if limited {
        tokio::time::timeout(app.settings.limits.request_timeout, answering).await
    } else {
        Ok(answering.await)
    };
    let mut response = match outcome {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            tracing::error!(id = ?id, method, path, "a handler panicked");
            Problem::internal().into_response()
        }
        Err(_) => {
            let problem = Problem::new(
                "timeout",
                "the request was not sent or not answered in time; whether a write took effect is seen by reading",
            );
            problem.into_response()
        }
    };
    let took = started.elapsed();
    let status = response.status();
    app.metrics.request(method, resource(&path), status.as_u16(), took);
    if let Some(Code(code)) = response.extensions().get() {
        app.metrics.problem(code);
    }
    if status.is_server_error() {
        tracing::warn!(id = ?id, method, path, status = status.as_u16(), took_us = took.as_micros(), "request failed");
    } else {
        tracing::debug!(id = ?id, method, path, status = status.as_u16(), took_us = took.as_micros(), "request");
    }
    response.headers_mut().insert(REQUEST_ID, id);
    Ok(response)
}

async fn route(router: Router, request: Request<Incoming>) -> Response<Body> {
    match router.oneshot(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// What a path is about, for counting: a closed set, whatever clients make up.
fn resource(path: &str) -> &'static str {
    const RESOURCES: [&str; 15] = [
        "relations",
        "counters",
        "uniques",
        "attendance",
        "boards",
        "seasons",
        "limits",
        "subjects",
        "objects",
        "read",
        "batch",
        "live",
        "verify",
        "keys",
        "jobs",
    ];
    let first = path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next());
    first.and_then(|name| RESOURCES.into_iter().find(|known| *known == name)).unwrap_or("other")
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
