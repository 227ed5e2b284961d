//! Who may do what, over HTTP: keys, tokens, nobody.

#[path = "../support/mod.rs"]
mod support;

mod dev;
mod jwt;
mod keys;
mod matrix;
