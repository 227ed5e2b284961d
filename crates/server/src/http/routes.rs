//! The one table of routes. It serves requests, and it is what OpenAPI is made from.

use std::sync::OnceLock;

use axum::Router;
use axum::routing::{get, put};
use tally::core::Code;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::handlers::{
    admin, attendance, batch, boards, counters, docs, feed, health, limits, live, objects, relations, subjects, uniques,
};
use super::problem::Problem;
use crate::app::App;

#[derive(OpenApi)]
#[openapi(
    info(title = "Tally", description = "Interactions that always add up."),
    components(responses(docs::ProblemResponse)),
    tags(
        (name = "Relations", description = "Likes, reactions, bookmarks, favourites, follows"),
        (name = "Counters", description = "How many times?"),
        (name = "Uniques", description = "How many different ones?"),
        (name = "Attendance", description = "Who was there on which day?"),
        (name = "Boards", description = "Who leads?"),
        (name = "Limits", description = "May this happen now?"),
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
        .routes(routes!(counters::add_to_counter, counters::read_counter))
        .routes(routes!(uniques::observe, uniques::read_unique))
        .routes(routes!(uniques::read_union))
        .routes(routes!(attendance::attend, attendance::be_absent, attendance::read_presence))
        .routes(routes!(attendance::read_day))
        .routes(routes!(attendance::read_days))
        .routes(routes!(attendance::read_subject_days))
        .routes(routes!(boards::add_score, boards::set_score, boards::leave_board, boards::read_standing))
        .routes(routes!(boards::read_board))
        .routes(routes!(boards::read_seasons))
        .routes(routes!(limits::take, limits::read_limit))
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
        .fallback(async || Problem::new(Code::NotFound, "there is nothing at this path; /docs lists what there is"))
        .method_not_allowed_fallback(async || {
            Problem::new(
                Code::MethodNotAllowed,
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
