//! What the end-to-end tests share: the built binary as a child process, a small HTTP client, signed
//! tokens.

// Every test binary takes the part that it needs.
#![allow(dead_code, unused_imports, unreachable_pub)]

pub mod client;
pub mod events;
pub mod raw;
pub mod server;
pub mod tokens;
pub mod wait;

pub use client::{Answer, Client, edge, encode};
pub use events::Events;
pub use server::{ADMIN_KEY, Server, refused_start};
pub use wait::until;

pub use serde_json::{Value, json};
