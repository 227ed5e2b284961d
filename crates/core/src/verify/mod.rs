//! Recounting everything, as a job with a report.

pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use rule::{Recount, begin, recount, repair};
