//! Every name that was ever declared.

pub mod rows;
mod rule;

pub use rule::{all, declare};
