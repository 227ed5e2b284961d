//! What is declared of a kind of row. Stores lay rows out from this, and read and write them through
//! [`Key::cells`](super::Key::cells) and [`Row::cells`](super::Row::cells); a new kind of row touches no store's code.

use super::cell::Type;
use super::{DECLARED, RowKind};

/// A column: its name, and what it holds.
pub type Column = (&'static str, Type);

/// How rows that are not there are guarded in a store that can only lock those that are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guard {
    /// Looked up and written in one decision: the key itself is guard enough.
    Key,
    /// Looked at often and changed seldom.
    Changed,
    /// Changed often, and seldom decided on while it is not there.
    Absent,
}

/// With what a row is kept together, in a store that is made of parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// With everything whose key has the same value in this column.
    With(usize),
    /// Spread evenly over a few parts.
    Spread,
    /// With the store as a whole: there are few.
    Store,
}

/// When rows of a kind are due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// At the time in this column.
    At(&'static str),
    /// At once, as long as there is no time in this column.
    AtOnceUnless(&'static str),
}

impl Due {
    /// The column.
    pub fn column(self) -> &'static str {
        match self {
            Self::At(column) | Self::AtOnceUnless(column) => column,
        }
    }
}

/// By which of their columns rows of a kind stand in an order: see [`super::Row::stands`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ordered {
    /// The score; without one it is 0.
    pub score: Option<&'static str>,
    /// What comes behind the score.
    pub reached: &'static str,
    /// Only rows that have this text in this column stand.
    pub only: Option<(&'static str, &'static str)>,
}

/// A kind of row.
#[derive(Debug)]
pub struct Declared {
    /// The kind itself.
    pub kind: RowKind,
    /// Its name, as that of a table.
    pub name: &'static str,
    /// Its name where a byte has to do. Never changed, never used again.
    pub letter: u8,
    /// The capability that it belongs to: rows of one are mostly asked for together.
    pub capability: &'static str,
    /// The parts of its key, in order.
    pub key: &'static [Column],
    /// What it holds beside its key.
    pub columns: &'static [Column],
    /// How its absence is guarded.
    pub guard: Guard,
    /// With what it is kept together.
    pub home: Home,
    /// From which column [`super::Row::due`] follows, where rows of this kind are ever due.
    pub due: Option<Due>,
    /// How its rows stand in an order, where they ever do.
    pub order: Option<Ordered>,
    /// The sequence whose numbers its rows carry, in their key or in a column. It has the home of the row.
    pub sequence: Option<&'static str>,
}

/// Declares a kind of row in its [`super::Kind`]: letter, name and capability, the parts of its key, its other columns, how its
/// absence is guarded, and its home.
macro_rules! declare {
    ($kind:ident = $letter:literal $name:literal in $capability:literal
        ($($key:literal $key_type:ident),*) => ($($column:literal $type:ident),*)
        $guard:ident $home:ident $(($with:literal))?
        $(, due $due:expr)? $(, order $order:expr)? $(, numbered $sequence:expr)?) => {
        const DECLARED: $crate::rows::Declared = $crate::rows::Declared {
            kind: $crate::rows::RowKind::$kind,
            name: $name,
            letter: $letter,
            capability: $capability,
            key: &[$(($key, $crate::rows::Type::$key_type)),*],
            columns: &[$(($column, $crate::rows::Type::$type)),*],
            guard: $crate::rows::Guard::$guard,
            home: $crate::rows::Home::$home $(($with))?,
            due: $crate::rows::only!($($due)?),
            order: $crate::rows::only!($($order)?),
            sequence: $crate::rows::only!($($sequence)?),
        };
    };
}
pub(crate) use declare;

/// Some of what is there, if anything is.
macro_rules! only {
    () => {
        None
    };
    ($what:expr) => {
        Some($what)
    };
}
pub(crate) use only;

impl RowKind {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Whether it is no row but a total that is listed as one.
    pub fn is_total(self) -> bool {
        self == Self::Counter
    }

    /// Whether its rows ever stand in an order.
    pub fn stands(self) -> bool {
        self.declared().order.is_some()
    }

    /// Whether a place in an order says all that a row of this kind holds.
    pub fn is_its_place(self) -> bool {
        let declared = self.declared();
        declared
            .order
            .is_some_and(|by| declared.columns.iter().all(|(name, _)| by.score == Some(name) || by.reached == *name))
    }

    /// The sequence whose numbers such rows carry.
    pub fn sequence(self) -> Option<&'static str> {
        self.declared().sequence
    }

    /// What it is made of.
    pub fn declared(self) -> &'static Declared {
        &DECLARED[self as usize]
    }
}
