//! How many times.

mod def;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use def::CounterDef;
pub use rule::count;
