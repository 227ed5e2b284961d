//! Who waits for what, in which order.

pub mod rows;
