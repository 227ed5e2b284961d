//! The one table of routes, which the handlers make together. It serves requests, and it is what OpenAPI is made from.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use axum::Router;
use tally::core::Code;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{OpenApi, Ref};
use utoipa::{OpenApi as _, ToResponse};
use utoipa_axum::router::OpenApiRouter;

use super::handlers::{PARTS, docs};
use super::problem::Problem;
use crate::app::App;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "Tally", description = "Interactions that always add up."),
    components(responses(docs::ProblemResponse))
)]
struct Contract;

fn table() -> OpenApiRouter<App> {
    PARTS.iter().fold(OpenApiRouter::with_openapi(Contract::openapi()), |table, routes| table.merge(routes()))
}

/// The router.
pub fn router(app: App) -> Router {
    let (router, _) = table().split_for_parts();
    router
        .fallback(async || Problem::new(Code::NotFound, "there is nothing at this path; /docs lists what there is"))
        .method_not_allowed_fallback(async || {
            Problem::new(
                Code::MethodNotAllowed,
                "this path does not take this method; the Allow header says which it takes",
            )
        })
        .with_state(app)
}

fn contract() -> OpenApi {
    let (_, mut contract) = table().split_for_parts();
    let bearer = SecurityScheme::Http(
        HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("An API key, or a user's JWT")).build(),
    );
    contract.components.get_or_insert_default().add_security_scheme("bearer", bearer);
    contract.security = Some(vec![SecurityRequirement::new::<&str, [&str; 0], &str>("bearer", [])]);
    for operation in contract.paths.paths.values_mut().flat_map(operations) {
        // Whoever has to say who they are may be refused.
        if operation.security.is_none() {
            let problem = Ref::from_response_name(docs::ProblemResponse::response().0);
            operation.responses.responses.insert("4XX".into(), problem.into());
        }
    }
    contract
}

fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut path.get, &mut path.put, &mut path.post, &mut path.delete].into_iter().flatten()
}

/// What a path is about, for counting: a closed set, whatever clients make up.
pub fn resource(path: &str) -> &'static str {
    static RESOURCES: OnceLock<BTreeSet<String>> = OnceLock::new();
    let known = RESOURCES.get_or_init(|| {
        let contract = table().into_openapi();
        contract.paths.paths.keys().filter_map(|path| named(path)).map(str::to_owned).collect()
    });
    named(path).and_then(|name| known.get(name)).map_or("other", String::as_str)
}

/// The first name of a path below `/v1/`. The waiting page stands elsewhere, since a proxy serves it under the shop's own host.
fn named(path: &str) -> Option<&str> {
    if path.starts_with("/wait/") {
        return Some("rooms");
    }
    path.strip_prefix("/v1/")?.split('/').next()
}

/// The contract as JSON, made once.
pub fn openapi_json() -> &'static str {
    static JSON: OnceLock<String> = OnceLock::new();
    JSON.get_or_init(|| contract().to_pretty_json().unwrap_or_default())
}
