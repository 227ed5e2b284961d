//! Sequences: dense numbers in the order of commits, which the store gives when it commits.
//!
//! A number that is read, increased and written would have every two servers in each other's way, and a stamp is not the order
//! of commits. So a decision only says that it takes the next number, and its rows carry "the i-th of what this commit takes".

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Cells};
use super::declared::{Home, declare};
use super::value::{Value, columns};
use super::{Among, Change, Changes, Key, Kind, Place, Row, Standing, kind};

/// The largest number of a sequence, which every store and every client can hold exactly.
pub const NUMBER_MAX: u64 = 1 << 53;

/// Names a sequence. Rows that carry its numbers have its home.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SequenceKey {
    /// With what it is kept together.
    pub home: String,
    /// Which of those in that home.
    pub name: String,
}

impl SequenceKey {
    /// The row that holds the last number given. Whoever takes numbers does not look at it.
    pub fn key(&self) -> Key {
        Key::Sequence(self.clone())
    }

    /// The last number given, as its row says.
    pub fn last(row: Option<&Row>) -> u64 {
        if let Some(Row::Sequence(last)) = row { *last } else { 0 }
    }

    /// The first of so many numbers behind the last one, and the row as it is then. Nothing where there are no more.
    pub fn take(last: u64, count: u32) -> Option<(u64, Row)> {
        let after = last.checked_add(u64::from(count)).filter(|after| *after <= NUMBER_MAX)?;
        Some((last + 1, Row::Sequence(after)))
    }

    /// What a store says that has no more numbers to give.
    pub fn exhausted(&self) -> String {
        format!("the sequence {} of {} has no more numbers", self.name, self.home)
    }
}

/// A number of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Seq {
    /// It is known.
    Given(u64),
    /// Of those that this commit takes, the one in this place, counted from 0.
    Taken(u32),
}

impl Seq {
    /// The number, where the first one that the commit took is this.
    pub fn given(self, first: u64) -> u64 {
        match self {
            Self::Given(number) => number,
            Self::Taken(place) => first + u64::from(place),
        }
    }
}

impl Value for Seq {
    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Given(number) => Cell::Number(*number),
            Self::Taken(place) => Cell::Taken(*place),
        }
    }

    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Number(number) => Some(Self::Given(number)),
            Cell::Taken(place) => Some(Self::Taken(place)),
            _ => None,
        }
    }
}

columns!(SequenceKey { home, name });

impl Kind for kind::Sequence {
    declare!(Sequence = b'Q' "sequence" in "sequence"
        ("home" Text, "name" Text) => ("last" Number)
        Absent With(0));
}

/// A row carries a number that its commit does not take.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a row carries a number that was not taken: {0}")]
pub struct NotTaken(String);

impl Key {
    /// The sequence whose numbers the row may carry.
    pub fn sequence(&self) -> Option<SequenceKey> {
        let kind = self.kind();
        let (name, Home::With(home)) = (kind.sequence()?, kind.declared().home) else { return None };
        let home = self.to_cells().into_iter().nth(home)?.to_string();
        Some(SequenceKey { home, name: name.to_owned() })
    }

    /// Whether its number is not given yet, so that no store can hold it.
    pub fn is_taken(&self) -> bool {
        let mut taken = false;
        if self.kind().sequence().is_some() {
            self.cells(|cell| taken |= matches!(cell, Cell::Taken(_)));
        }
        taken
    }
}

impl Row {
    /// Whether it holds a number that is not given yet.
    pub fn is_taken(&self) -> bool {
        let mut taken = false;
        if self.kind().sequence().is_some() {
            self.cells(|cell| taken |= matches!(cell, Cell::Taken(_)));
        }
        taken
    }
}

impl Place {
    /// Where a row stands whose place goes by its number alone. One that is to be given is behind all that were.
    pub fn of_number(seq: Seq) -> Self {
        let reached = match seq {
            Seq::Given(number) => number,
            Seq::Taken(at) => NUMBER_MAX + 1 + u64::from(at),
        };
        Self { score: 0, reached, id: reached.to_string().into() }
    }
}

impl Standing {
    /// Whether it waits for a number.
    pub fn is_to_be_numbered(&self) -> bool {
        matches!(self.among, Among::At { reached, .. } if reached > NUMBER_MAX)
    }

    /// The sequence whose number it waits for, and which of those that are taken.
    pub fn taken(&self) -> Option<(SequenceKey, u32)> {
        let kind = self.order.kind();
        let (name, Home::With(home)) = (kind.sequence()?, kind.declared().home) else { return None };
        let Among::At { reached, .. } = &self.among else { return None };
        let place = u32::try_from(reached.checked_sub(NUMBER_MAX + 1)?).ok()?;
        let home = self.order.to_cells().into_iter().nth(home)?.to_string();
        Some((SequenceKey { home, name: name.to_owned() }, place))
    }
}

impl Changes {
    /// Which of the sequences a point waits for, how many are taken of it, and which of them it is. One that is not among them
    /// is behind all of them, as it stands.
    pub fn taken_at(&self, standing: &Standing) -> Option<(usize, u32, u32)> {
        let (sequence, at) = standing.taken()?;
        let place = self.numbers.iter().position(|(taken, _)| *taken == sequence)?;
        let (_, count) = self.numbers[place];
        (at < count).then_some((place, count, at))
    }

    /// Points with their numbers filled in, where the first of each sequence is this.
    pub fn standings(&self, standings: &[Standing], first: &[u64]) -> Vec<Standing> {
        let given = |standing: &Standing| {
            let taken = self.taken_at(standing).and_then(|(place, _, at)| Some(first.get(place)? + u64::from(at)));
            match taken {
                Some(number) => Standing::at(standing.order.clone(), Place::of_number(Seq::Given(number))),
                None => standing.clone(),
            }
        };
        standings.iter().map(given).collect()
    }

    /// Whether there are rows whose numbers the store is to fill in.
    fn carries(&self) -> bool {
        self.rows.iter().any(|(key, change)| key.is_taken() || change.after.as_ref().is_some_and(Row::is_taken))
    }

    /// Each row that carries a number that is not given yet must carry one that this takes.
    pub fn check_numbers(&self) -> Result<(), NotTaken> {
        if self.carries() { self.fill(|_| Some(1)).map(drop) } else { Ok(()) }
    }

    /// Which of the sequences a row's numbers are of, and how many are taken of it.
    pub fn taken_of(&self, key: &Key) -> Option<(usize, u32)> {
        let sequence = key.sequence()?;
        let place = self.numbers.iter().position(|(taken, _)| *taken == sequence)?;
        Some((place, self.numbers[place].1))
    }

    /// The same with the numbers filled in, where the first of each sequence is this. Nothing where there is none to fill in.
    pub fn given(&self, first: &[u64]) -> Result<Option<Self>, NotTaken> {
        if !self.carries() {
            return Ok(None);
        }
        let rows = self.fill(|place| first.get(place).copied())?;
        Ok(Some(Self { rows, adds: self.adds.clone(), numbers: self.numbers.clone(), stamp: self.stamp }))
    }

    fn fill(&self, first: impl Fn(usize) -> Option<u64>) -> Result<Vec<(Key, Change)>, NotTaken> {
        let filled = |(key, change): &(Key, Change)| {
            if !key.is_taken() && !change.after.as_ref().is_some_and(Row::is_taken) {
                return Some((key.clone(), change.clone()));
            }
            let (place, count) = self.taken_of(key)?;
            let first = first(place)?;
            let after = match &change.after {
                Some(row) => Some(Row::from_cells(row.kind(), &mut numbered(row.to_cells(), first, count)?)?),
                None => None,
            };
            let before = change.before.clone();
            let key = Key::from_cells(key.kind(), &mut numbered(key.to_cells(), first, count)?)?;
            Some((key, Change { before, after }))
        };
        self.rows.iter().map(|row| filled(row).ok_or_else(|| NotTaken(format!("{:?}", row.0)))).collect()
    }
}

fn numbered(cells: Vec<Cell<'_>>, first: u64, count: u32) -> Option<Cells<'_>> {
    let given = |cell| match cell {
        Cell::Taken(place) => (place < count).then(|| Cell::Number(first + u64::from(place))),
        other => Some(other),
    };
    cells.into_iter().map(given).collect::<Option<Vec<_>>>().map(Cells::new)
}
