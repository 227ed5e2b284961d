//! What is counted, over HTTP: counters, unique counts, attendance, boards, limits.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

#[path = "../support/mod.rs"]
mod support;

mod attendance;
mod boards;
mod counters;
mod forgetting;
mod limits;
mod names;
mod uniques;
