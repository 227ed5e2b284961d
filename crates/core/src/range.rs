//! What can be read page by page.

use crate::cursor::Cursor;
use crate::id::Name;
use crate::rows::{self, Edge, EdgeKey, Key, ListKey, OrderKey, Partitions, RowKind};
use crate::time::Timestamp;

/// What to scan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Range {
    /// Edges of one list, newest first.
    List {
        /// The list.
        list: ListKey,
        /// The last row of the page before.
        after: Option<Place>,
    },
    /// Rows of one kind that are due ([`Row::due`]), soonest first, and then by key.
    Due {
        /// The kind.
        kind: RowKind,
        /// Those in one of these partitions ([`Key::partition`]). The others are not read.
        partitions: Partitions,
        /// At this time or later.
        from: Timestamp,
        /// And before this one.
        before: Timestamp,
    },
    /// Every row of a kind of which there are few ([`Home::Store`](crate::rows::Home)), by key.
    Few(RowKind),
    /// Rows of an order ([`Row::stands`](crate::rows::Row::stands)).
    Order {
        /// The order.
        order: OrderKey,
        /// Where to begin, and which way to go.
        from: OrderFrom,
    },
    /// Every row, whatever it is; totals are not rows, but counters are. The order is the engine's own, but fixed and
    /// total: a page continues exactly behind a key, whether or not its row is still there.
    Rows {
        /// The last row of the page before.
        after: Option<Key>,
    },
}

impl Range {
    /// API keys.
    pub const API_KEYS: Self = Self::Few(RowKind::ApiKey);
    /// Jobs that have not ended: they are due at once.
    pub const OPEN_JOBS: Self =
        Self::Due { kind: RowKind::Job, partitions: Partitions::ALL, from: Timestamp(0), before: Timestamp(1) };

    /// What is due before a time.
    pub fn due(kind: RowKind, before: Timestamp) -> Self {
        Self::Due { kind, partitions: Partitions::ALL, from: Timestamp(0), before }
    }

    /// Jobs that ended before a time.
    pub fn ended_jobs(before: Timestamp) -> Self {
        Self::Due { kind: RowKind::Job, partitions: Partitions::ALL, from: Timestamp(1), before }
    }
}

/// Where in an order to begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OrderFrom {
    /// With the row before which so many stand, and downwards.
    Rank(u64),
    /// Right behind where a row stands, or would, and downwards.
    Behind(rows::Place),
    /// Right ahead of where a row stands, or would, and upwards: the nearest first.
    Ahead(rows::Place),
}

/// A row's place in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The relation, for lists that run over all of them.
    pub relation: Name,
    /// The stamp, and the id that breaks ties.
    pub cursor: Cursor,
}

impl Place {
    /// Where an edge stands in a list.
    pub fn of(list: &ListKey, key: &EdgeKey, edge: &Edge) -> Self {
        let cursor = Cursor { stamp: edge.created, other: key.other(list.side).to_owned() };
        Self { relation: key.relation.clone(), cursor }
    }
}
