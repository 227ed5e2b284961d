//! The Tally server: settings, authentication, HTTP, and the `tally` command.

pub mod auth;
pub mod config;
pub mod tls;
