//! Who may do what, over HTTP: keys, tokens, nobody.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

#[path = "../support/mod.rs"]
mod support;

mod dev;
mod jwt;
mod keys;
mod matrix;
mod privacy;
