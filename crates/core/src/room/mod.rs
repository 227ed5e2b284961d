//! The waiting room: everybody gets a ticket, and is let in in order.

pub mod rows;
