//! Whether the server lives, whether it is ready, and what it counts.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tally::core::Code;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::policy::Permission;
use crate::http::problem::Problem;
use crate::http::reply;
use crate::http::request::{Caller, Outcome};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz)).routes(routes!(metrics))
}

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
        return Err(Problem::new(Code::Overloaded, "the server is stopping"));
    }
    if app.tally.has_ended_partly() {
        let text = "a part of the server has ended by a panic, and some requests are not answered; restart it";
        return Err(Problem::new(Code::StoreUnavailable, text));
    }
    match app.tally.ping().await {
        Ok(()) => Ok(reply::json(StatusCode::OK, &json!({"status": "ready"}))),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            Err(Problem::new(Code::StoreUnavailable, "the store does not take writes now"))
        }
    }
}

/// Figures for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "Running",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text")))]
pub async fn metrics(caller: Caller) -> Outcome {
    caller.may(Permission::Metrics, None, None)?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], caller.app.metrics.render(&caller.app.tally, caller.app.memory.held()))
        .into_response())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::Request;
    use tally::core::rows::ApiKey;
    use tally::{KeyRing, Options, Tally};
    use tower::ServiceExt;

    use super::*;
    use crate::auth::Authenticator;
    use crate::http::routes;
    use crate::metrics::Metrics;
    use crate::settings::load_from;
    use tally_settings::ServeArgs;

    async fn app(options: Options) -> App {
        let settings = load_from(&ServeArgs::default(), &BTreeMap::new()).unwrap();
        let auth = Authenticator::new(&settings).await.unwrap();
        let tally = Tally::open("memory:", options).await.unwrap();
        let admission = crate::admission::Admission::new(&settings.admission).unwrap();
        App::new(tally, auth, admission, settings, Arc::new(Metrics::default()))
    }

    async fn ready(app: &App) -> StatusCode {
        let request = Request::get("/readyz").body(Body::empty()).unwrap();
        routes::router(app.clone()).oneshot(request).await.unwrap().status()
    }

    struct Panics;

    impl KeyRing for Panics {
        fn changes(&self) -> u64 {
            0
        }

        fn replace(&self, _stored: &[(String, ApiKey)], _changes: u64) -> bool {
            panic!("as the test says")
        }
    }

    #[tokio::test]
    async fn a_server_that_does_not_follow_its_keys_any_more_is_not_ready() {
        let look_every = Some(Duration::from_millis(1));
        let app = app(Options { look_every, ..Options::default() }).await;
        assert_eq!(ready(&app).await, StatusCode::OK);
        let following = tokio::spawn({
            let app = app.clone();
            async move { app.tally.follow_keys(&Panics).await }
        });
        assert!(following.await.unwrap_err().is_panic());
        assert_eq!(ready(&app).await, StatusCode::SERVICE_UNAVAILABLE);
    }

    #[tokio::test]
    async fn a_server_that_stops_to_follow_its_keys_is_none_the_worse() {
        let app = app(Options::default()).await;
        let following = tokio::spawn({
            let app = app.clone();
            async move { app.tally.follow_keys(&Panics).await }
        });
        following.abort();
        assert!(following.await.unwrap_err().is_cancelled());
        assert_eq!(ready(&app).await, StatusCode::OK);
    }
}
