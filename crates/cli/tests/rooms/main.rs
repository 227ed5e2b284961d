//! Waiting rooms, over HTTP: tickets, admissions, what proxies ask, the waiting page.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

#[path = "../support/mod.rs"]
mod support;

mod admissions;
mod check;
mod nginx;
mod page;
mod tickets;
mod world;
