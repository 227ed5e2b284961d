//! Relations over HTTP: every call of the contract answers as written.

#[path = "../support/mod.rs"]
mod support;

mod edges;
mod ids;
mod jobs;
mod lists;
mod reads;
mod rules;
