//! Rooms as a server serves them: polls from memory, exact positions, many watches.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

mod memory;
mod together;
mod watches;
mod world;
