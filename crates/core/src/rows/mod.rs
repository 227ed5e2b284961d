//! The rows that stores keep: typed and closed, so that each store lays them out in its own idiom.
//!
//! A kind of row stands in the list of `crate::capability`, and says everything else of itself in its capability's `rows.rs`: see
//! `Kind`.

mod base64;
mod cell;
mod declared;
mod due;
mod kinds;
mod order;
mod sequence;
#[cfg(test)]
mod sequence_tests;
#[cfg(test)]
mod tests;
mod total;
mod value;

use crate::time::{Stamp, Timestamp};

pub(crate) use crate::capability::{DECLARED, kind};
pub use crate::capability::{Key, Row, RowKind, rows::*};
pub(crate) use base64::as_base64;
pub use cell::{Cell, Cells, Type};
pub use declared::{Column, Declared, Due, Guard, Home, Ordered};
pub(crate) use declared::{declare, only};
pub use due::{DUE_PARTITIONS, Partitions};
pub(crate) use kinds::{InOrder, Kind, Typed, kinds};
pub use order::{Among, Moved, OrderKey, Place, Standing};
pub use sequence::{NUMBER_MAX, NotTaken, Seq, SequenceKey};
pub use total::{Number, NumberOf, TotalKey, TotalOf};
pub(crate) use value::{Columns, Value, columns, documents, in_bytes, texts};

impl Key {
    /// The values of the key's columns, gathered.
    pub fn to_cells(&self) -> Vec<Cell<'_>> {
        let mut cells = Vec::with_capacity(4);
        self.cells(|cell| cells.push(cell));
        cells
    }
}

impl Row {
    /// The values of the columns beside the key, gathered.
    pub fn to_cells(&self) -> Vec<Cell<'_>> {
        let mut cells = Vec::with_capacity(5);
        self.cells(|cell| cells.push(cell));
        cells
    }

    /// When a counter was last added to.
    pub fn touched(&self) -> Option<Timestamp> {
        self.touched_at().copied()
    }
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
