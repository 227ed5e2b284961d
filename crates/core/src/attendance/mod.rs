//! Who was there on each day.

pub(crate) mod audit;
mod def;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use audit::{Fact, Owner};
pub use def::SheetDef;
pub use rule::{attend, change, current_streak, forget, longest_streak, run_up_to, take_back, today};
