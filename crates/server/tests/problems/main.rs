//! Everything that can be wrong with a request, and the problem document that says so.

#[path = "../support/mod.rs"]
mod support;

mod documents;
mod wire;
