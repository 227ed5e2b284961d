//! Long work in short steps.

pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use rule::{begin, expire, sweep};
