//! Whether the server lives, whether it is ready, and what it counts.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::Outcome;
use crate::app::App;
use crate::auth::policy::Call;
use crate::http::problem::Problem;
use crate::http::reply;
use crate::http::request::Caller;

/// Is the process alive?
#[utoipa::path(get, path = "/healthz", tag = "Running", security(()),
    responses((status = 200, description = "It is", body = Object)))]
pub async fn healthz() -> Response {
    reply::json(StatusCode::OK, &json!({"status": "ok"}))
}

/// Does the store answer and take writes?
#[utoipa::path(get, path = "/readyz", tag = "Running", security(()),
    responses((status = 200, description = "It does", body = Object), (status = 503, response = super::docs::ProblemResponse)))]
pub async fn readyz(State(app): State<App>) -> Outcome {
    if *app.stopping.borrow() {
        return Err(Problem::new("overloaded", "the server is stopping"));
    }
    if app.tally.has_ended_partly() {
        let text = "a part of the server has ended by a panic, and some requests are not answered; restart it";
        return Err(Problem::new("store_unavailable", text));
    }
    match app.tally.ping().await {
        Ok(()) => Ok(reply::json(StatusCode::OK, &json!({"status": "ready"}))),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            Err(Problem::new("store_unavailable", "the store does not take writes now"))
        }
    }
}

/// Figures for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "Running",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"), (status = "4XX", response = super::docs::ProblemResponse)))]
pub async fn metrics(State(app): State<App>, caller: Caller) -> Outcome {
    caller.may(Call::Metrics, None, None)?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], app.metrics.render(&app.tally, app.memory.held())).into_response())
}
