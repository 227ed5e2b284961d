//! Recounting everything, as a job with a report.

mod fact;
mod ledger;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub(crate) use fact::Claims;
pub use fact::{Fact, Judged, Known, Wrong};
pub use ledger::Ledger;
pub use rule::{Recount, begin, put_right, recount, repair};
