//! How a question is answered without I/O: a pure function that asks for rows and pages.
//!
//! It runs from its beginning until everything that it asks for is there. Whoever runs it gets what it missed, and runs it
//! again with that: the same questions get the same answers, so it comes one question further each time. Every load is of
//! one moment; two loads are of two, and a function that needs both says how they must fit.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::command::Auth;
use crate::range::Range;
use crate::rows::{Key, Row};
use crate::time::{Stamp, Timestamp};
use crate::view::{Stop, Wants};

/// How often something is read anew because it has moved meanwhile. Past it, too many write.
pub const TRIES_MAX: usize = 64;

/// What was loaded, in the order of the wants, all of one moment.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The rows; none where there is none.
    pub rows: Vec<Option<Row>>,
    /// Totals; absent is 0.
    pub totals: Vec<i64>,
    /// How many members stand before each place.
    pub ranks: Vec<u64>,
    /// What time it was there.
    pub now: Stamp,
}

/// A page, in order.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The rows.
    pub items: Vec<(Key, Row)>,
    /// Whether there are more.
    pub more: bool,
}

/// Something that a question asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// These, as of one moment.
    Load(Wants),
    /// The same, where they need not be of one moment.
    LoadLoosely(Wants),
    /// A page of so many rows.
    Scan(Range, usize),
}

/// What was found for it.
#[derive(Clone, Debug)]
pub enum Seen {
    /// To a load.
    Found(Arc<Found>),
    /// To a scan.
    Page(Arc<Page>),
}

/// Why there is no answer yet, or none at all.
#[derive(Debug)]
pub enum Halt {
    /// This is to be found first.
    Missing(Asked),
    /// It is refused.
    Refused(crate::error::Refusal),
    /// What it reads keeps moving.
    Moving,
}

impl From<crate::error::Refusal> for Halt {
    fn from(refusal: crate::error::Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(refusal) => Self::Refused(refusal),
            Stop::Miss => Self::Moving,
        }
    }
}

/// What a question sees: what was found so far, and who asks.
pub struct Sight<'a> {
    /// What is declared.
    pub catalog: &'a Catalog,
    /// Who asks.
    pub auth: &'a Auth,
    /// What time it is, as far as conditions go.
    pub now: Timestamp,
    seen: &'a [Seen],
    at: usize,
}

impl<'a> Sight<'a> {
    /// With what was found so far, in the order in which it was asked for.
    pub fn new(catalog: &'a Catalog, auth: &'a Auth, now: Timestamp, seen: &'a [Seen]) -> Self {
        Self { catalog, auth, now, seen, at: 0 }
    }

    fn next(&mut self) -> Option<&'a Seen> {
        let next = self.seen.get(self.at);
        self.at += 1;
        next
    }

    fn found(&mut self, asked: impl FnOnce() -> Asked) -> Result<Arc<Found>, Halt> {
        match self.next() {
            Some(Seen::Found(found)) => Ok(found.clone()),
            // It asks in another order than before: then what it stands on has moved.
            Some(Seen::Page(_)) => Err(Halt::Moving),
            None => Err(Halt::Missing(asked())),
        }
    }

    /// Rows, totals and ranks, as of one moment. They are named only when they are not there yet.
    pub fn load(&mut self, wants: impl FnOnce() -> Wants) -> Result<Arc<Found>, Halt> {
        self.found(|| Asked::Load(wants()))
    }

    /// The same, where they need not be of one moment.
    pub fn load_loosely(&mut self, wants: impl FnOnce() -> Wants) -> Result<Arc<Found>, Halt> {
        self.found(|| Asked::LoadLoosely(wants()))
    }

    /// One row.
    pub fn row(&mut self, key: impl FnOnce() -> Key) -> Result<Option<Row>, Halt> {
        let found = self.load(|| Wants::rows(vec![key()]))?;
        Ok(found.rows.first().cloned().flatten())
    }

    /// What time it is where writes are stamped.
    pub fn store_time(&mut self) -> Result<Timestamp, Halt> {
        Ok(self.load(Wants::default)?.now.time())
    }

    /// A page.
    pub fn scan(&mut self, range: impl FnOnce() -> Range, limit: usize) -> Result<Arc<Page>, Halt> {
        match self.next() {
            Some(Seen::Page(page)) => Ok(page.clone()),
            Some(Seen::Found(_)) => Err(Halt::Moving),
            None => Err(Halt::Missing(Asked::Scan(range(), limit))),
        }
    }
}
