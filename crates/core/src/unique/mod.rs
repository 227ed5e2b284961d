//! How many different ones.

mod def;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use def::UniqueDef;
pub use rule::observe;
