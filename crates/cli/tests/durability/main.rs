//! Nothing that was answered is lost, and nothing is half done: kills, cut files, full disks, stops.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

#[path = "../support/mod.rs"]
mod support;

mod disk;
mod files;
mod kills;
mod load;
mod stops;
