//! Moving a whole store: every row, every count, wherever it was stopped.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails its test, in helpers too")]

mod refused;
mod stopped;
mod whole;
mod world;
