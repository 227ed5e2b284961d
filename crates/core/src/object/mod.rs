//! Registered objects: what edges may have to point to.

pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use rule::{delete, facts, is_owned_by, put, read, show};
