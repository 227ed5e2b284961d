//! Relations over HTTP: every call of the contract answers as written.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

#[path = "../support/mod.rs"]
mod support;

mod edges;
mod ids;
mod jobs;
mod lists;
mod reads;
mod rules;
