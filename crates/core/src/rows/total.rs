//! Totals: numbers that are only ever added to.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{COUNTER, CountKey, PRESENT, ROOM, RoomCount, RowKind};
use crate::day::Day;
use crate::id::{KeyId, Name, ObjectId, SubjectId};

/// Names a total: a number that is only ever added to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum TotalKey {
    /// How many visible edges an object has in a relation: the count.
    Object {
        /// The object.
        object: ObjectId,
        /// The relation.
        relation: Name,
    },
    /// How many of them are of one kind.
    Kind {
        /// The object.
        object: ObjectId,
        /// The relation.
        relation: Name,
        /// The kind.
        kind: Name,
    },
    /// How many edges, visible or hidden, a subject has in a relation.
    Subject {
        /// The subject.
        subject: SubjectId,
        /// The relation.
        relation: Name,
    },
    /// A counter. The only total that may be negative, and the only one that no rows stand behind.
    Counter(CountKey),
    /// How many were there on a day.
    Present {
        /// The sheet.
        sheet: Name,
        /// The day.
        day: Day,
    },
    /// What is counted of a room.
    Room {
        /// The room.
        room: Name,
        /// What.
        count: RoomCount,
    },
}

/// A total as stores see it: it counts edges, or it is a number under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TotalOf<'a> {
    /// Visible edges of an object.
    Object(&'a ObjectId, &'a Name),
    /// Those of one kind.
    Kind(&'a ObjectId, &'a Name, &'a Name),
    /// Edges of a subject.
    Subject(&'a SubjectId, &'a Name),
    /// Anything else.
    Number(Number<'a>),
}

/// What a number counts, said in its capability's `rows.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NumberOf {
    /// As the name of a table.
    pub table: &'static str,
    /// The same where a byte has to do. Never changed, never used again.
    pub letter: u8,
    /// The same where it stands among the kinds of edges: no relation has such a kind.
    pub mark: &'static str,
    /// Whether it is kept together with what has the same key; otherwise with what has the same name.
    pub with_key: bool,
    /// The row as which it is listed where all rows are, if it is.
    pub listed: Option<RowKind>,
}

/// A total that counts no edges. Stores keep all of these alike, whatever they count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Number<'a> {
    /// What it counts, as the name of a table.
    pub table: &'static str,
    /// The same where a byte has to do. Never changed, never used again.
    pub letter: u8,
    /// The same where it stands among the kinds of edges: no relation has such a kind.
    pub mark: &'static str,
    /// A declared name.
    pub name: &'a Name,
    /// Which of those under the name.
    pub key: Cow<'a, str>,
    /// Whether it is kept together with what has the same key; otherwise with what has the same name.
    pub with_key: bool,
    /// The row as which it is listed where all rows are, if it is.
    pub listed: Option<RowKind>,
}

impl NumberOf {
    /// The one of this name and key.
    fn number<'a>(self, name: &'a Name, key: Cow<'a, str>) -> Number<'a> {
        let Self { table, letter, mark, with_key, listed } = self;
        Number { table, letter, mark, name, key, with_key, listed }
    }
}

impl Number<'_> {
    /// The mark of counters.
    pub const COUNTER: &'static str = COUNTER.mark;
    const PRESENT: &'static str = PRESENT.mark;

    const ROOM: &'static str = ROOM.mark;

    /// Table, letter and mark of each that is not listed as a row.
    pub const UNLISTED: [(&'static str, u8, &'static str); 2] =
        [(PRESENT.table, PRESENT.letter, PRESENT.mark), (ROOM.table, ROOM.letter, ROOM.mark)];
}

impl TotalKey {
    /// Whether it counts edges.
    pub fn counts_edges(&self) -> bool {
        !matches!(self.of(), TotalOf::Number(_))
    }

    /// What it counts, as stores see it.
    pub fn of(&self) -> TotalOf<'_> {
        match self {
            Self::Object { object, relation } => TotalOf::Object(object, relation),
            Self::Kind { object, relation, kind } => TotalOf::Kind(object, relation, kind),
            Self::Subject { subject, relation } => TotalOf::Subject(subject, relation),
            Self::Counter(CountKey { name, key }) => TotalOf::Number(COUNTER.number(name, Cow::Borrowed(key.as_str()))),
            Self::Present { sheet, day } => TotalOf::Number(PRESENT.number(sheet, Cow::Owned(day.to_string()))),
            Self::Room { room, count } => TotalOf::Number(ROOM.number(room, Cow::Borrowed(count.name()))),
        }
    }

    /// The number of this mark, name and key.
    pub fn from_number(mark: &str, name: Name, key: &str) -> Option<Self> {
        match mark {
            Number::COUNTER => Some(Self::Counter(CountKey { name, key: KeyId::new(key).ok()? })),
            Number::PRESENT => Some(Self::Present { sheet: name, day: key.parse().ok()? }),
            Number::ROOM => Some(Self::Room { room: name, count: RoomCount::from_name(key)? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_from_what_stores_keep_of_them() {
        let name = Name::new("daily").unwrap();
        for total in [
            TotalKey::Counter(CountKey { name: name.clone(), key: KeyId::new("post:42").unwrap() }),
            TotalKey::Present { sheet: name.clone(), day: Day(20_000) },
            TotalKey::Room { room: name, count: RoomCount::Inside },
        ] {
            let TotalOf::Number(number) = total.of() else { panic!("{total:?} counts edges") };
            assert_eq!(TotalKey::from_number(number.mark, number.name.clone(), &number.key).as_ref(), Some(&total));
            let unlisted = Number::UNLISTED.contains(&(number.table, number.letter, number.mark));
            assert_eq!(unlisted, number.listed.is_none(), "{total:?}");
        }
    }
}
