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
pub mod subjects;
pub mod uniques;

use axum::http::StatusCode;
use tally::core::command::{Command, Once};
use tally::core::{Answer, Query};

use super::problem::Problem;
use super::reply;
use super::request::Caller;
use crate::app::App;

/// What a handler gives.
pub type Outcome = Result<axum::response::Response, Problem>;

/// Asks a query as the caller.
async fn ask(app: &App, caller: &Caller, query: Query) -> Result<Answer, Problem> {
    Ok(app.tally.query(query, &caller.facts()).await?)
}

/// Answers a query as the caller.
async fn answer(app: &App, caller: &Caller, query: Query) -> Outcome {
    Ok(reply::json(StatusCode::OK, &ask(app, caller, query).await?))
}

/// Does what the caller asks for, once where it has a key.
async fn apply(app: &App, caller: &Caller, command: Command, once: Option<Once>) -> Outcome {
    reply::decided(StatusCode::OK, caller.apply(app, command, once).await?)
}
