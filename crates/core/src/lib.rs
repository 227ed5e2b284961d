//! The meaning of Tally, written once: commands, rows, and the pure rules between them.
//!
//! Nothing here has a clock, randomness, I/O or async. Time and ids arrive with the command,
//! rows arrive through a [`View`], and a rule answers with a reply and a list of changes.

pub mod attendance;
pub mod batch;
pub mod board;
pub mod bounded;
mod capability;
pub mod catalog;
pub mod code;
pub mod command;
pub mod condition;
pub mod counter;
pub mod cursor;
pub mod day;
pub mod decide;
pub mod due;
pub mod error;
pub mod hash;
pub mod id;
pub mod job;
pub mod key;
pub mod limit;
pub mod limits;
pub mod meta;
pub mod names;
pub mod object;
pub mod operation;
pub mod permission;
pub mod prints;
pub mod query;
pub mod range;
pub mod read;
pub mod relation;
pub mod replay;
pub mod reply;
pub mod room;
pub mod rows;
pub mod schedule;
pub mod subject;
#[cfg(test)]
mod tests;
pub mod time;
pub mod unique;
pub mod verify;
pub mod view;

pub use catalog::Catalog;
pub use code::{Class, Code};
pub use command::{Auth, Call, Command, Cost, Decided, Once};
pub use condition::Condition;
pub use cursor::{BoardCursor, Cursor};
pub use day::Day;
pub use decide::{Context, decide};
pub use error::Refusal;
pub use id::{KeyId, Name, ObjectId, SubjectId};
pub use operation::Operation;
pub use permission::Permission;
pub use query::{Answer, Query, Question};
pub use relation::{Conditions, ReadPolicy, RelationDef};
pub use reply::Reply;
pub use rows::{Changes, Key, Row, TotalKey};
pub use time::{Stamp, Timestamp};
pub use view::{Stop, View, Wants};
