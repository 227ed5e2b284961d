//! The rows that stores keep: typed and closed, so that each store lays them out in its own idiom.

mod base64;
mod cell;
mod columns;
mod declared;
mod due;
mod implied;
mod order;
mod sequence;
#[cfg(test)]
mod sequence_tests;
#[cfg(test)]
mod tests;
mod total;
mod typed;

use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::id::{Name, ObjectId, SubjectId};
use crate::time::{Stamp, Timestamp};

pub use crate::attendance::rows::{Attendee, Bits, CHUNK_BITS, ChunkKey};
pub use crate::board::rows::{Board, BoardKey, Score, ScoreKey};
pub use crate::counter::rows::CountKey;
pub use crate::job::rows::{Job, JobId, JobKind, Round, Work};
pub use crate::key::rows::{ApiKey, Role};
pub use crate::limit::rows::{LimitKey, Used, UsedState};
pub use crate::names::rows::Names;
pub use crate::object::rows::Object;
pub use crate::relation::rows::{Edge, EdgeKey, ListKey, Side};
pub use crate::replay::rows::{Replay, ReplayKey};
pub use crate::room::rows::{EntryKey, Ticket, TicketKey, TicketState};
pub use crate::subject::rows::{Forgotten, Subject, Suspension};
pub use crate::unique::rows::{SKETCH_ERROR, Sketch};
pub use crate::verify::rows::{DriftItem, VerifyReport};
pub(crate) use base64::as_base64;
pub use cell::{Cell, Cells, Type};
pub use declared::{Column, Declared, Due, Guard, Home, Ordered, RowKind};
pub use due::{DUE_PARTITIONS, Partitions};
pub use order::{Among, Moved, OrderKey, Place, Standing};
pub use sequence::{NUMBER_MAX, NotTaken, Seq, SequenceKey};
pub use total::{Number, TotalKey, TotalOf};

/// Names a row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Key {
    /// An edge.
    Edge(EdgeKey),
    /// A registered object.
    Object(ObjectId),
    /// What is known about a subject beyond its edges.
    Subject(SubjectId),
    /// A remembered answer.
    Replay(ReplayKey),
    /// A piece of long work.
    Job(JobId),
    /// An API key.
    ApiKey(String),
    /// A counter. Its value is a total, see [`TotalKey::Counter`]; it is named as a row where all rows are listed.
    Counter(CountKey),
    /// When a counter was last added to, where it keeps that.
    Touched(CountKey),
    /// A unique count.
    Unique(CountKey),
    /// What has been used of a limit.
    Limit(LimitKey),
    /// How many subjects of a sheet have been numbered.
    Sheet(Name),
    /// Which chunks a day has.
    Day(Name, Day),
    /// A part of a day's bitmap.
    Chunk(ChunkKey),
    /// A subject on a sheet.
    Attendee(Name, SubjectId),
    /// What is known of a board beyond its scores.
    Board(Name),
    /// A member's score.
    Score(ScoreKey),
    /// Every name that was ever declared.
    Names,
    /// The last number given of a sequence.
    Sequence(SequenceKey),
    /// A place in a room's queue.
    Ticket(TicketKey),
    /// Which ticket a subject's token stands for.
    Entry(EntryKey),
}

/// The value of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Row {
    /// See [`Edge`].
    Edge(Edge),
    /// See [`Object`].
    Object(Object),
    /// See [`Subject`].
    Subject(Subject),
    /// See [`Replay`].
    Replay(Replay),
    /// See [`Job`].
    Job(Job),
    /// See [`ApiKey`].
    ApiKey(ApiKey),
    /// A counter's value; never 0, which is a counter that is not there.
    Counter(i64),
    /// When the counter was last added to.
    Touched(Timestamp),
    /// See [`Sketch`].
    Unique(Sketch),
    /// See [`Used`].
    Limit(Used),
    /// The next number.
    Sheet(u64),
    /// The chunks, in order.
    Day(Vec<u64>),
    /// The lower parts of the numbers in it.
    Chunk(Bits),
    /// See [`Attendee`].
    Attendee(Attendee),
    /// See [`Board`].
    Board(Board),
    /// See [`Score`].
    Score(Score),
    /// See [`Names`].
    Names(Names),
    /// The last number given.
    Sequence(u64),
    /// See [`Ticket`].
    Ticket(Ticket),
    /// The ticket's number.
    Entry(Seq),
}

/// One row's change. `before` is what the decision saw, so that a store can take down what
/// depends on it without reading again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The row as it was.
    pub before: Option<Row>,
    /// The row as it will be.
    pub after: Option<Row>,
}

/// Everything that a batch changes, all or nothing. Each key stands in it once, in no order: a
/// store that locks rows sorts them first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Rows that are put or deleted.
    pub rows: Vec<(Key, Change)>,
    /// Additions to totals. They never conflict.
    pub adds: Vec<(TotalKey, i64)>,
    /// How many numbers are taken of each sequence, which stands here once. They never conflict, and are given in the order of
    /// commits: rows carry them as [`Seq::Taken`].
    pub numbers: Vec<(SequenceKey, u32)>,
    /// The newest stamp that the batch used.
    pub stamp: Stamp,
}

impl Changes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.adds.is_empty() && self.numbers.is_empty()
    }
}
