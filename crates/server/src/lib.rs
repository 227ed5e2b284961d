//! The server: settings, who may do what, the HTTP surface, and what runs them.

pub mod app;
pub mod auth;
pub mod cli;
pub mod door;
pub mod http;
pub mod metrics;
pub mod serve;
pub mod settings;
pub mod tls;
