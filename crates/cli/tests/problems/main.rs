//! Everything that can be wrong with a request, and the problem document that says so.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

#[path = "../support/mod.rs"]
mod support;

mod documents;
mod wire;
