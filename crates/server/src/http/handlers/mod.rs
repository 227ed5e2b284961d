//! Handlers: permission, then a command or a query, then its answer. No rules here.

pub mod admin;
pub mod attendance;
pub mod batch;
pub mod boards;
pub mod counters;
pub mod docs;
pub mod feed;
pub mod health;
pub mod limits;
pub mod live;
pub mod objects;
pub mod relations;
pub mod rooms;
pub mod subjects;
pub mod tickets;
pub mod uniques;

use serde::Serialize;
use tally::core::reply::{AttendReply, CounterReply, EdgeReply, ScoreReply, TakeReply, UniqueReply};
use utoipa::openapi::tag::TagBuilder;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

/// Every part of the contract, in the order of its tags.
pub(super) const PARTS: &[fn() -> OpenApiRouter<App>] = &[
    relations::routes,
    feed::routes,
    counters::routes,
    uniques::routes,
    attendance::routes,
    boards::routes,
    limits::routes,
    rooms::routes,
    tickets::routes,
    batch::routes,
    subjects::routes,
    objects::routes,
    admin::routes,
    live::routes,
    health::routes,
    docs::routes,
];

/// What a command of a batch is answered with.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes the answer")]
pub(super) enum CommandReply {
    Edge(EdgeReply),
    Count(CounterReply),
    Unique(UniqueReply),
    Attend(AttendReply),
    Score(ScoreReply),
    Take(TakeReply),
}

/// A call that is done once, however often it is sent.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes the header")]
struct Idempotent {
    /// 1 to 128 visible ASCII characters
    #[param(rename = "Idempotency-Key")]
    idempotency_key: Option<String>,
}

/// Routes under a tag, with what the contract says of it.
fn tagged(name: &str, about: &str) -> OpenApiRouter<App> {
    let mut router = OpenApiRouter::new();
    router.get_openapi_mut().tags = Some(vec![TagBuilder::new().name(name).description(Some(about)).build()]);
    router
}
