//! Orders: rows of which stores know how many stand before any place, such as the scores of a board.
//!
//! An order is of one kind of rows. Which one a row may stand in, and its id there, follow from its key: the order is all
//! but the last part of it, and the id is the last part. So a place leads back to its row.

use std::cmp::Ordering;
use std::sync::Arc;

use super::cell::{Cell, Cells};
use super::value::Columns;
use super::{BoardKey, Key, Row, RowKind};
use crate::id::Name;

/// Names an order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OrderKey {
    /// A board in one of its seasons, or the different scores on it.
    Board(BoardKey),
    /// Who waits in a room.
    Queue(Name),
}

/// Where a row stands in its order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Higher ones stand first. Between plus and minus [`crate::limits::SCORE_MAX`].
    pub score: i64,
    /// Of equal scores, lower ones stand first.
    pub reached: u64,
    /// Of equal ones of both, lower ones stand first, by their bytes.
    pub id: Arc<str>,
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.cmp(&self.score).then(self.reached.cmp(&other.reached)).then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A point in an order. A store is asked how many rows stand before it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Standing {
    /// The order.
    pub order: OrderKey,
    /// The score.
    pub score: i64,
    /// Where among those with this score.
    pub among: Among,
}

/// A point among rows with one score.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Among {
    /// Before all of them.
    First,
    /// Behind all of them.
    Last,
    /// Where this one stands, or would.
    At {
        /// What comes before the id.
        reached: u64,
        /// The id.
        id: Arc<str>,
    },
}

impl Standing {
    /// Where a row stands, or would.
    pub fn at(order: OrderKey, place: Place) -> Self {
        Self { order, score: place.score, among: Among::At { reached: place.reached, id: place.id } }
    }

    /// Behind everybody in an order.
    pub fn end(order: OrderKey) -> Self {
        Self { order, score: -crate::limits::SCORE_MAX - 1, among: Among::Last }
    }

    /// Whether this is behind a row's place.
    pub fn is_behind(&self, place: &Place) -> bool {
        match place.score.cmp(&self.score) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => match &self.among {
                Among::First => false,
                Among::Last => true,
                Among::At { reached, id } => (place.reached, &place.id) < (*reached, id),
            },
        }
    }
}

impl From<BoardKey> for OrderKey {
    fn from(board: BoardKey) -> Self {
        Self::Board(board)
    }
}

impl OrderKey {
    /// What kind of rows stand in it.
    pub fn kind(&self) -> RowKind {
        match self {
            Self::Board(_) => RowKind::Score,
            Self::Queue(_) => RowKind::Ticket,
        }
    }

    /// What the keys of its rows begin with.
    pub fn cells<'a>(&'a self, mut put: impl FnMut(Cell<'a>)) {
        match self {
            Self::Board(board) => board.put(&mut put),
            Self::Queue(room) => room.put(&mut put),
        }
    }

    /// The same, gathered.
    pub fn to_cells(&self) -> Vec<Cell<'_>> {
        let mut cells = Vec::with_capacity(4);
        self.cells(|cell| cells.push(cell));
        cells
    }

    /// Reads back what the keys of rows of a kind begin with.
    pub fn from_cells(kind: RowKind, from: &mut Cells<'_>) -> Option<Self> {
        // Each of them is of another kind, so at most one is it.
        let board = (kind == RowKind::Score).then(|| Columns::take(from).map(Self::Board)).flatten();
        board.or_else(|| (kind == RowKind::Ticket).then(|| Columns::take(from).map(Self::Queue)).flatten())
    }

    /// The key of the row that has this id.
    pub fn key(&self, id: &str) -> Option<Key> {
        let kind = self.kind();
        let (_, last) = kind.declared().key.last()?;
        let mut cells = self.to_cells();
        cells.push(Cell::from_text(*last, id)?);
        Key::from_cells(kind, &mut Cells::new(cells))
    }

    /// The row that stands at a place, where the place says everything of it ([`RowKind::is_its_place`]). Others are to be
    /// looked up.
    pub fn row(&self, place: &Place) -> Option<Row> {
        Row::at(self.kind(), place)
    }
}

impl super::Change {
    /// From where to where the row moves in its order. None where it stands as before, or nowhere.
    pub fn moves(&self, key: &Key) -> Option<Moved> {
        let place = |row: &Option<Row>| row.as_ref().and_then(|row| row.stands(key)).map(|(_, place)| place);
        if !key.kind().stands() {
            return None;
        }
        let (before, after) = (place(&self.before), place(&self.after));
        (before != after).then(|| Some(Moved { order: key.order()?, before, after })).flatten()
    }
}

/// A row that begins to stand in an order, ceases to, or stands elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The order.
    pub order: OrderKey,
    /// Where it stood.
    pub before: Option<Place>,
    /// Where it stands now.
    pub after: Option<Place>,
}
