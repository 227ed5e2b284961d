//! Handlers: permission, then a command or a query, then its answer. No rules here.

pub mod admin;
pub mod batch;
pub mod docs;
pub mod feed;
pub mod health;
pub mod live;
pub mod objects;
pub mod relations;
pub mod subjects;

use tally::core::{Answer, Query};

use super::problem::Problem;
use super::request::Caller;
use crate::app::App;

/// What a handler gives.
pub type Outcome = Result<axum::response::Response, Problem>;

/// Asks a query as the caller.
async fn ask(app: &App, caller: &Caller, query: Query) -> Result<Answer, Problem> {
    Ok(app.tally.query(query, &caller.facts()).await?)
}
