//! Who leads, and who stands where.

pub(crate) mod audit;
mod def;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use audit::Fact;
pub use def::{BoardDef, Ties};
pub use rule::{board_key, check_ties, put, rank_anew, rank_standing, read, score, take};
