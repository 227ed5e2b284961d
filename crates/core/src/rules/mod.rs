//! The rules: one file a capability, each a pure function of the command, the rows and the time.

pub mod attendance;
pub mod batch;
pub mod board;
pub mod counter;
pub mod forget;
pub mod job;
pub mod key;
pub mod limit;
pub mod names;
pub mod object;
pub mod once;
pub mod relation;
mod remembered;
pub mod subject;
pub mod unique;
pub mod verify;

#[cfg(test)]
mod tests;
