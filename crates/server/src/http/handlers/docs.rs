//! The contract, for machines and for people.

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use utoipa::ToResponse;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::http::problem::Document;
use crate::http::routes;

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(openapi))
        .route("/", get(home))
        .route("/docs", get(page))
        .route("/docs/docs.js", get(script))
        .route("/docs/docs.css", get(style))
}

/// A problem document.
#[derive(ToResponse)]
#[response(description = "A problem document; `code` says which", content_type = "application/problem+json")]
#[allow(dead_code, reason = "describes the answer")]
pub struct ProblemResponse(#[to_schema] Document<'static>);

/// The contract as OpenAPI 3.1
#[utoipa::path(get, path = "/openapi.json", tag = "Running", security(()),
    responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub async fn openapi(State(_app): State<App>) -> Response {
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    ([kind], routes::openapi_json()).into_response()
}

/// The contract as a page. It is part of the program and asks nobody else for anything.
pub async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            ),
        ),
    ];
    (headers, include_str!("../../../assets/docs.html")).into_response()
}

/// The page's script.
pub async fn script() -> Response {
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/javascript; charset=utf-8"));
    ([kind], include_str!("../../../assets/docs.js")).into_response()
}

/// The page's style.
pub async fn style() -> Response {
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8"));
    ([kind], include_str!("../../../assets/docs.css")).into_response()
}

/// The front door, until there is a console behind it.
pub async fn home() -> Redirect {
    Redirect::temporary("/docs")
}
