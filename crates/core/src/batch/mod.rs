//! Several commands as one.

mod rule;
#[cfg(test)]
mod tests;

pub use rule::{decide, rehearse};
