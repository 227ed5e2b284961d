//! The meaning of Tally, written once: commands, rows, and the pure rules between them.
//!
//! Nothing here has a clock, randomness, I/O or async. Time and ids arrive with the command,
//! rows arrive through a [`View`], and a rule answers with a reply and a list of changes.

pub mod bounded;
pub mod catalog;
pub mod code;
pub mod command;
pub mod condition;
pub mod cursor;
pub mod day;
pub mod decide;
pub mod error;
pub mod hash;
pub mod id;
pub mod limits;
pub mod meta;
pub mod prints;
pub mod query;
pub mod rows;
pub mod rules;
pub mod schedule;
pub mod time;
pub mod view;

pub use catalog::{Catalog, Conditions, ReadPolicy, RelationDef};
pub use code::Code;
pub use command::{Auth, Call, Command, Cost, Decided, Once, Reply};
pub use condition::Condition;
pub use cursor::{BoardCursor, Cursor};
pub use day::Day;
pub use decide::{Context, decide};
pub use error::Refusal;
pub use id::{KeyId, Name, ObjectId, SubjectId};
pub use query::{Answer, Query};
pub use rows::{Changes, Key, Row, TotalKey};
pub use time::{Stamp, Timestamp};
pub use view::{Stop, View, Wants};
