//! Answers that are remembered, so that a request that is sent again has one effect.

mod remembered;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use rule::{decide, expire};
