//! Several servers on one PostgreSQL, Redis or Redis Cluster: one truth, whichever of them is asked and whatever dies.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

#[path = "../support/mod.rs"]
mod support;

mod clocks;
mod counting;
mod database;
mod health;
mod jobs;
mod keys;
mod live;
mod once;
mod reads;
mod refusals;
mod tls;
mod truth;
mod verify;
mod writers;
