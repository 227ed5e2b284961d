//! The door: who sends nothing, too slowly, too much, or from the wrong page, and who comes after them.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not so")]

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod connections;
mod cors;
mod dev;
mod heads;
mod http_2;
mod streams;
mod tls;

use support::raw::Raw;
use support::*;

/// The head of a request with the admin key.
fn head(method: &str, path: &str, more: &str) -> String {
    anonymous(method, path, &format!("authorization: Bearer {ADMIN_KEY}\r\n{more}"))
}

/// The head of a request of nobody.
fn anonymous(method: &str, path: &str, more: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: tally\r\n{more}\r\n")
}

const LIKE: &str = "/v1/relations/like/post:1/alice";
const JSON: &str = "content-type: application/json\r\n";

/// A connection that has asked once and stays open.
async fn idle(server: &Server) -> Raw {
    let mut raw = Raw::connect(server).await;
    assert!(is_alive(&mut raw).await);
    raw
}

/// Whether a connection still answers.
async fn is_alive(raw: &mut Raw) -> bool {
    raw.send(anonymous("GET", "/healthz", "")).await;
    String::from_utf8_lossy(&raw.read_some().await).starts_with("HTTP/1.1 200")
}
