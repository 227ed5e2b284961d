//! The server: who may do what, the door, the HTTP surface, and what runs them.

pub mod admission;
pub mod app;
pub mod auth;
pub mod door;
pub mod http;
pub mod metrics;
pub mod serve;
pub mod settings;
pub mod tls;
