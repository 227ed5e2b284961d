//! The HTTP surface: a table of routes, handlers that turn requests into commands and queries, and
//! the service around them that limits, counts and names every request.

pub mod allowance;
pub mod body;
pub mod counts;
pub mod handlers;
pub mod problem;
pub mod rate;
pub mod reply;
pub mod request;
pub mod routes;
pub mod service;
pub mod visitor;
pub mod withheld;
