//! The one table of routes. It serves requests, and it is what OpenAPI is made from.

use std::sync::OnceLock;

use axum::Router;
use axum::routing::{get, put};
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::handlers::{admin, batch, docs, feed, health, live, objects, relations, subjects};
use super::problem::Problem;
use crate::app::App;

#[derive(OpenApi)]
#[openapi(
    info(title = "Tally", description = "Interactions that always add up."),
    components(responses(docs::ProblemResponse)),
    tags(
        (name = "Relations", description = "Likes, reactions, bookmarks, favourites, follows"),
        (name = "Batches", description = "Many commands in one request"),
        (name = "Subjects", description = "A subject as a whole"),
        (name = "Objects", description = "The registry for existence rules"),
        (name = "Running", description = "Operating the server"),
    ),
)]
struct Contract;

fn table() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Contract::openapi())
        .routes(routes!(relations::relate, relations::unrelate, relations::read_edge))
        .routes(routes!(relations::toggle))
        .routes(routes!(relations::read_count))
        .routes(routes!(relations::list_subjects))
        .routes(routes!(relations::list_objects))
        .routes(routes!(batch::batch))
        .routes(routes!(feed::read))
        .routes(routes!(subjects::forget))
        .routes(routes!(subjects::suspend))
        .routes(routes!(subjects::restore))
        .routes(routes!(subjects::read_job))
        .routes(routes!(objects::put, objects::get, objects::delete))
        .routes(routes!(admin::verify))
        .routes(routes!(admin::backup))
        .routes(routes!(admin::create_key, admin::list_keys))
        .routes(routes!(admin::revoke_key))
        .routes(routes!(live::live))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(docs::openapi))
}

/// The router.
pub fn router(app: App) -> Router {
    let (router, _) = table().split_for_parts();
    router
        .route(
            "/v1/relations/{relation}/{object}/subjects",
            put(relations::relate_subjects).delete(relations::unrelate_subjects),
        )
        .route("/", get(docs::home))
        .route("/docs", get(docs::page))
        .route("/docs/docs.js", get(docs::script))
        .route("/docs/docs.css", get(docs::style))
        .fallback(async || Problem::new("not_found", "there is nothing at this path; /docs lists what there is"))
        .method_not_allowed_fallback(async || {
            Problem::new(
                "method_not_allowed",
                "this path does not take this method; the Allow header says which it takes",
            )
        })
        .with_state(app)
}

/// The contract as JSON, made once.
pub fn openapi_json() -> &'static str {
    static JSON: OnceLock<String> = OnceLock::new();
    JSON.get_or_init(|| {
        let (_, mut contract) = table().split_for_parts();
        let bearer = SecurityScheme::Http(
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("An API key, or a user's JWT")).build(),
        );
        contract.components.get_or_insert_default().add_security_scheme("bearer", bearer);
        contract.security = Some(vec![SecurityRequirement::new::<&str, [&str; 0], &str>("bearer", [])]);
        contract.to_pretty_json().unwrap_or_default()
    })
}
