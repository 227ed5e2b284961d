//! May this happen now?

mod def;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

pub use def::{Algorithm, LimitDef, Per, RateLimit};
pub use rule::{Room, expire, key_of, limit_key, look_at, pass, peek, row, take};
