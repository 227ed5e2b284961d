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
use serde::Serialize;
use tally::core::Question;
use tally::core::command::{Command, Once};

use super::problem::Problem;
use super::reply;
use super::request::Caller;
use crate::app::App;

/// What a handler gives.
pub type Outcome = Result<axum::response::Response, Problem>;

/// Answers a question as the caller, who has to be allowed it.
async fn answer<Q: Question<Answer: Serialize>>(app: &App, caller: &Caller, question: Q) -> Outcome {
    Ok(reply::json(StatusCode::OK, &caller.ask(app, &question).await?))
}

/// Does what the caller asks for, once where it has a key.
async fn apply(app: &App, caller: &Caller, command: impl Into<Command>, once: Option<Once>) -> Outcome {
    reply::decided(StatusCode::OK, caller.apply(app, command, once).await?)
}
