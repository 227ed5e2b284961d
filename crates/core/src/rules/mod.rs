//! The rules: one file a capability, each a pure function of the command, the rows and the time.

pub mod batch;
pub mod job;
pub mod key;
pub mod object;
pub mod once;
pub mod relation;
pub mod subject;

#[cfg(test)]
mod tests;
