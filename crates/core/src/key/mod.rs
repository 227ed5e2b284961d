//! API keys.

pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use rule::{put, revoke};
