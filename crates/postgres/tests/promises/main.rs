//! What is promised of this store beyond the suite, each on a real PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

mod access;
mod clocks;
mod counting;
mod disk;
mod locks;
mod lost;
mod names;
mod network;
mod numbers;
mod ordered;
mod outages;
mod plans;
mod queues;
mod spread;
mod support;
mod tables;
