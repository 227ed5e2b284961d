//! What rows imply beyond themselves: everything that is said in two places, by the rows that say it and the rows behind that.
//!
//! A row claims what it says of a fact and what it counts towards it. Over the whole store both sums are the same for every fact;
//! where they are not, something is wrong. Each capability has its own facts, in its `audit.rs`.

use std::collections::HashMap;

use crate::id::Name;
use crate::rows::{BoardKey, DriftItem, Key, OrderKey, Row, RowKind, TotalKey};
use crate::view::{Stop, View};
use crate::{attendance, board};

/// Something that is said twice. A store needs to know nothing else of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fact {
    /// What the day or the board lists comes first: others are looked at by way of it.
    Attendance(attendance::Fact),
    /// A total that counts no edges.
    Total(TotalKey),
    /// See [`board::Fact`].
    Board(board::Fact),
}

/// What is said of a fact, and what the rows behind it add up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    /// What is said.
    pub said: i64,
    /// What it should be.
    pub counted: i64,
}

/// A fact of which both sides do not agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// The fact.
    pub fact: Fact,
    /// Both sides.
    pub judged: Judged,
    /// The row that it is about, where the fact does not name it.
    pub who: Option<Key>,
}

/// Takes what a row claims: the fact, and both sides of it.
pub(crate) struct Claims<'a>(pub(super) &'a mut dyn FnMut(Fact, Judged));

impl Claims<'_> {
    pub(crate) fn said(&mut self, fact: Fact, said: i64) {
        (self.0)(fact, Judged { said, counted: 0 });
    }

    pub(crate) fn counted(&mut self, fact: Fact, counted: i64) {
        (self.0)(fact, Judged { said: 0, counted });
    }
}

/// What rows that were read tell of those that are read after them.
#[derive(Default)]
pub struct Known {
    /// Boards, and whether their levels are counted.
    boards: HashMap<Name, bool>,
}

impl Known {
    /// Takes note of a row. Boards come before their scores, as in [`RowKind::ALL`].
    pub(super) fn note(&mut self, key: &Key, row: &Row) {
        if let (Key::Board(name), Row::Board(board)) = (key, row) {
            self.boards.insert(name.clone(), board.dense);
        }
    }

    /// Whether the levels of a board are counted; nothing where it does not say.
    pub(crate) fn dense(&self, board: &Name) -> Option<bool> {
        self.boards.get(board).copied()
    }
}

impl RowKind {
    /// Whether rows of this kind imply anything beyond themselves, or tell what others do.
    pub fn implies(self) -> bool {
        match self {
            Self::Day | Self::Chunk | Self::Attendee | Self::Board | Self::Score => true,
            // Edges are recounted with their lists.
            Self::Edge
            | Self::Object
            | Self::Subject
            | Self::Replay
            | Self::Job
            | Self::ApiKey
            | Self::Names
            | Self::Counter
            | Self::Touched
            | Self::Unique
            | Self::Limit
            | Self::Sheet
            | Self::Sequence
            | Self::Ticket
            | Self::Entry => false,
        }
    }
}

impl Row {
    /// What it claims.
    pub(super) fn implies(&self, key: &Key, known: &Known, claims: &mut Claims<'_>) {
        match (self, key) {
            (Self::Day(chunks), Key::Day(sheet, day)) => attendance::audit::day(sheet, *day, chunks, claims),
            (Self::Chunk(bits), Key::Chunk(key)) => attendance::audit::chunk(key, bits, claims),
            (Self::Attendee(row), Key::Attendee(sheet, _)) => attendance::audit::attendee(sheet, row, claims),
            (Self::Score(score), Key::Score(key)) => board::audit::score(key, *score, known, claims),
            // Nothing, or a row under the key of another.
            (
                Self::Day(_)
                | Self::Chunk(_)
                | Self::Attendee(_)
                | Self::Score(_)
                | Self::Edge(_)
                | Self::Object(_)
                | Self::Subject(_)
                | Self::Replay(_)
                | Self::Job(_)
                | Self::ApiKey(_)
                | Self::Names(_)
                | Self::Counter(_)
                | Self::Touched(_)
                | Self::Unique(_)
                | Self::Limit(_)
                | Self::Sheet(_)
                | Self::Board(_)
                | Self::Sequence(_)
                | Self::Ticket(_)
                | Self::Entry(_),
                _,
            ) => {}
        }
    }
}

impl TotalKey {
    /// The fact that a total is, where rows that are no edges stand behind it.
    pub(super) fn fact(&self) -> Option<Fact> {
        match self {
            Self::Present { .. } => Some(Fact::Total(self.clone())),
            // Recounted with the edges; and nothing stands behind a counter.
            Self::Object { .. } | Self::Kind { .. } | Self::Subject { .. } | Self::Counter(_) => None,
        }
    }
}

impl Fact {
    /// What both sides say, of rows as of one moment. For stores that cannot read everything at one moment.
    pub fn look(&self, who: Option<&Key>, view: &mut View) -> Result<Judged, Stop> {
        match self {
            Self::Attendance(fact) => fact.look(who, view),
            Self::Board(fact) => fact.look(view),
            Self::Total(TotalKey::Present { sheet, day }) => attendance::audit::look_at_day(sheet, *day, view),
            Self::Total(
                TotalKey::Object { .. } | TotalKey::Kind { .. } | TotalKey::Subject { .. } | TotalKey::Counter(_),
            ) => Ok(Judged::default()),
        }
    }

    /// Whether another fact cannot be looked at as long as this one is wrong.
    pub fn unsettles(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Attendance(fact), Self::Total(total)) => fact.unsettles(total),
            (Self::Attendance(_) | Self::Total(_) | Self::Board(_), _) => false,
        }
    }

    /// The order by way of which it is looked at: as long as that is wrong, so is what is seen.
    pub fn order(&self) -> Option<OrderKey> {
        match self {
            Self::Board(board::Fact::Level(key)) => Some(BoardKey { levels: false, ..key.board.clone() }.into()),
            Self::Board(board::Fact::Ranked(_)) | Self::Attendance(_) | Self::Total(_) => None,
        }
    }

    /// Whether it is put right before all that do not come first: others are put right by way of it.
    pub fn comes_first(&self) -> bool {
        match self {
            Self::Attendance(attendance::Fact::Listed(_)) => true,
            Self::Attendance(attendance::Fact::Bit { .. }) | Self::Total(_) | Self::Board(_) => false,
        }
    }

    /// Puts right what says it. Says whether there was anything to put right.
    pub(super) fn put_right(&self, who: Option<&Key>, view: &mut View) -> Result<bool, Stop> {
        match self {
            Self::Attendance(fact) => fact.put_right(who, view),
            Self::Board(fact) => fact.put_right(view),
            Self::Total(total) => {
                let Judged { said, counted } = self.look(who, view)?;
                view.add(total, counted - said)?;
                Ok(counted != said)
            }
        }
    }

    /// Whose number it is about.
    pub(super) fn owner(&self) -> Option<attendance::Owner> {
        match self {
            Self::Attendance(fact) => fact.owner(),
            Self::Total(_) | Self::Board(_) => None,
        }
    }
}

impl Wrong {
    /// For people.
    pub fn words(&self) -> String {
        match &self.fact {
            Fact::Attendance(fact) => fact.words(self.judged, self.who.as_ref()),
            Fact::Board(fact) => fact.words(self.judged),
            Fact::Total(total) => {
                let item = DriftItem::new(total, self.judged.said, self.judged.counted);
                let of = item.object.unwrap_or_default();
                format!("the total of {} {of} says {}, and it is {}", item.relation, item.stored, item.counted)
            }
        }
    }
}
