//! The runner: what it decides together, what it answers when, and what it does when things fail.
//!
//! Nothing here waits for time. An engine with gates says when a batch has come to a place, and a
//! test opens the gate when it has seen enough.

mod batching;
mod conflict;
mod failing;
mod gated;
mod lifecycle;
mod overload;
mod races;
mod support;
