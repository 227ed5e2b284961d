//! What happens to a subject as a whole: forgotten, suspended, restored.

pub mod forget;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use rule::{begin_forgetting, check_name, end_forgetting, read, restore, suspend};
