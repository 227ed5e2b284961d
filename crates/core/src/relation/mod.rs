//! Likes, bookmarks, reactions, follows: edges between subjects and objects.

mod def;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use def::{Conditions, ReadPolicy, RelationDef};
pub use rule::{count_key, edge_key, relate, remove, set_hidden, toggle, unrelate};
