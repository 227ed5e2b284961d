//! Recounts everything as of one moment.
//!
//! The tables are sorted by the same ids, so each total meets its edges in one pass, whatever the
//! size of the store, and nothing is held in memory.

use std::collections::{BTreeMap, HashMap};
use std::iter::Peekable;
use std::ops::Bound;

use tally_core::rows::{Edge, EdgeKey, Key, OrderKey, Side, TotalKey};
use tally_core::{Name, ObjectId, SubjectId};
use tally_engine::{Audited, Finding, StoreError};

use crate::ordered::PlaceSum;
use crate::store::{Row, Snapshot};
use crate::{codec, keys, unavailable};

pub(crate) type Tell<'a> = &'a mut (dyn FnMut(Finding) + Send);

/// Rows are read in chunks of so many, and progress is told after each.
const CHUNK_ROWS: usize = 4_096;

/// Compares totals with edges and lists with edges, in both directions; orders with the rows in them; and everything else with what it says of
/// each other.
pub(crate) fn audit(
    snapshot: &Snapshot,
    orders: HashMap<OrderKey, PlaceSum>,
    tell: Tell<'_>,
) -> Result<Audited, StoreError> {
    let mut audit = Audit { snapshot, tell, rows: 0, audited: Audited::default(), unlisted: BTreeMap::new() };
    audit.totals_of_objects()?;
    for side in [Side::Object, Side::Subject] {
        for hidden in [false, true] {
            audit.entries(side, hidden)?;
        }
    }
    audit.totals_of_subjects()?;
    audit.audited.rows = audit.audited.edges;
    audit.rows_of_every_kind()?;
    audit.orders(orders)?;
    (audit.tell)(Finding::Progress(audit.rows));
    Ok(audit.audited)
}

pub(crate) struct Audit<'a> {
    snapshot: &'a Snapshot,
    pub(crate) tell: Tell<'a>,
    rows: u64,
    pub(crate) audited: Audited,
    /// By how many entries the lists of a subject are off: what its edges are is the lists' length and this.
    unlisted: BTreeMap<Group, i64>,
}

/// The rows of one table, in order, a chunk at a time.
pub(crate) struct Table<'a> {
    snapshot: &'a Snapshot,
    chunk: std::vec::IntoIter<Row>,
    after: Option<Vec<u8>>,
    table: u8,
    ended: bool,
}

impl Iterator for Table<'_> {
    type Item = Result<Row, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.chunk.next() {
            return Some(Ok(row));
        }
        if self.ended {
            return None;
        }
        let first = [self.table];
        let low = self.after.as_ref().map_or(Bound::Included(&first[..]), |after| Bound::Excluded(&after[..]));
        let high = [self.table + 1];
        match self.snapshot.scan((low, Bound::Excluded(&high[..])), CHUNK_ROWS, false) {
            Ok(rows) => {
                self.ended = rows.len() < CHUNK_ROWS;
                self.after = rows.last().map(|(key, _)| key.to_vec());
                self.chunk = rows.into_iter();
                self.chunk.next().map(Ok)
            }
            Err(error) => {
                self.ended = true;
                Some(Err(unavailable(error)))
            }
        }
    }
}

impl<'a> Audit<'a> {
    pub(crate) fn table(&self, table: u8) -> Table<'a> {
        Table { snapshot: self.snapshot, chunk: Vec::new().into_iter(), after: None, table, ended: false }
    }

    pub(crate) fn read(&mut self, rows: u64) {
        let before = self.rows / CHUNK_ROWS as u64;
        self.rows += rows;
        if self.rows / CHUNK_ROWS as u64 > before {
            (self.tell)(Finding::Progress(self.rows));
        }
    }

    fn stray(&mut self, text: String, edge: &EdgeKey) {
        (self.tell)(Finding::Stray { found: text, edge: Some(edge.clone()) });
    }

    /// Edges and object totals are both sorted by object and relation.
    fn totals_of_objects(&mut self) -> Result<(), StoreError> {
        let mut edges = self.table(keys::EDGES).peekable();
        let mut totals = self.table(keys::OBJECT_TOTALS).peekable();
        while let Some(group) = next_group(&mut edges, &mut totals)? {
            let mut counted: BTreeMap<TotalKey, i64> = BTreeMap::new();
            while let Some((key, value)) = next_in(&mut edges, &group)? {
                self.read(1);
                self.audited.edges += 1;
                let (key, edge) = read_edge(&key, &value)?;
                self.check_listed(&key, &edge)?;
                for total in key.totals(&edge).filter(|total| !matches!(total, TotalKey::Subject { .. })) {
                    *counted.entry(total).or_default() += 1;
                }
            }
            let mut stored = BTreeMap::new();
            while let Some((key, value)) = next_in(&mut totals, &group)? {
                stored.insert(read_object_total(&key)?, codec::read_total(&value)?);
            }
            self.compare(stored, counted);
        }
        Ok(())
    }

    /// A subject's lists and its totals are both sorted by subject and relation.
    fn totals_of_subjects(&mut self) -> Result<(), StoreError> {
        let mut shown = self.table(keys::list_table(Side::Subject, false)).peekable();
        let mut hidden = self.table(keys::list_table(Side::Subject, true)).peekable();
        let mut totals = self.table(keys::SUBJECT_TOTALS).peekable();
        loop {
            let unlisted = self.unlisted.keys().next().cloned();
            let first = [peek_group(&mut shown)?, peek_group(&mut hidden)?, peek_subject_total(&mut totals)?, unlisted];
            let Some(group) = first.into_iter().flatten().min() else { return Ok(()) };
            let mut counted = self.unlisted.remove(&group).unwrap_or(0);
            for entries in [&mut shown, &mut hidden] {
                while next_in(entries, &group)?.is_some() {
                    self.read(1);
                    counted += 1;
                }
            }
            let stored = if peek_subject_total(&mut totals)?.as_ref() == Some(&group) {
                totals.next().transpose()?.map_or(Ok(0), |(_, value)| codec::read_total(&value))?
            } else {
                0
            };
            let total = subject_total(&group)?;
            self.compare(BTreeMap::from([(total.clone(), stored)]), BTreeMap::from([(total, counted)]));
        }
    }

    fn compare(&mut self, mut stored: BTreeMap<TotalKey, i64>, counted: BTreeMap<TotalKey, i64>) {
        self.audited.totals += stored.len() as u64;
        for (total, counted) in counted {
            let stored = stored.remove(&total).unwrap_or(0);
            if stored != counted {
                (self.tell)(Finding::Drift { total, stored, counted });
            }
        }
        for (total, stored) in stored.into_iter().filter(|(_, stored)| *stored != 0) {
            (self.tell)(Finding::Drift { total, stored, counted: 0 });
        }
    }

    fn off(&mut self, side: Side, key: &EdgeKey, by: i64) {
        if side == Side::Subject {
            let group = [key.subject.as_str(), "\0", key.relation.as_str(), "\0"].concat().into_bytes();
            *self.unlisted.entry(group).or_default() += by;
        }
    }

    /// Every edge stands in both of its lists.
    fn check_listed(&mut self, key: &EdgeKey, edge: &Edge) -> Result<(), StoreError> {
        for side in [Side::Object, Side::Subject] {
            let entry = keys::list_entry(key, edge, side);
            if self.snapshot.get(&entry).map_err(unavailable)?.is_none() {
                self.off(side, key, 1);
                self.stray(format!("the edge {key:?} is missing from the list of its {side:?}"), key);
            }
        }
        Ok(())
    }

    /// Every entry of a list has its edge.
    fn entries(&mut self, side: Side, hidden: bool) -> Result<(), StoreError> {
        for row in self.table(keys::list_table(side, hidden)) {
            let (key, value) = row?;
            self.read(1);
            let (edge_key, listed) = codec::read_entry(side, &key, &value)?;
            let stored = self.snapshot.get(&keys::row(&Key::Edge(edge_key.clone()))).map_err(unavailable)?;
            let stored = stored.map(|bytes| codec::read_edge(&bytes)).transpose()?;
            if stored.as_ref() != Some(&listed) {
                // Only what is attached may differ; then it stands where it should.
                if stored.is_none_or(|edge| keys::list_entry(&edge_key, &edge, side) != *key) {
                    self.off(side, &edge_key, -1);
                }
                let found = format!("the list of the {side:?} of {edge_key:?} does not agree with the edge");
                self.stray(found, &edge_key);
            }
        }
        Ok(())
    }
}

/// Object and relation, or subject and relation, as the key's bytes after its table.
type Group = Vec<u8>;

fn group_of(key: &[u8]) -> Option<Group> {
    let mut zeros = key.iter().enumerate().filter(|(_, byte)| **byte == 0);
    let (end, _) = zeros.nth(1)?;
    Some(key[1..=end].to_vec())
}

fn peek_group(rows: &mut Peekable<Table<'_>>) -> Result<Option<Group>, StoreError> {
    match rows.peek() {
        Some(Ok((key, _))) => group_of(key).map(Some).ok_or_else(|| keys::unreadable(key)),
        Some(Err(error)) => Err(error.clone()),
        None => Ok(None),
    }
}

/// A subject's total has no second zero byte; with one added it sorts and compares like a group.
fn peek_subject_total(rows: &mut Peekable<Table<'_>>) -> Result<Option<Group>, StoreError> {
    match rows.peek() {
        Some(Ok((key, _))) => Ok(Some([&key[1..], &[0]].concat())),
        Some(Err(error)) => Err(error.clone()),
        None => Ok(None),
    }
}

fn next_group(a: &mut Peekable<Table<'_>>, b: &mut Peekable<Table<'_>>) -> Result<Option<Group>, StoreError> {
    let (a, b) = (peek_group(a)?, peek_group(b)?);
    Ok(match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    })
}

fn next_in(rows: &mut Peekable<Table<'_>>, group: &Group) -> Result<Option<Row>, StoreError> {
    if peek_group(rows)?.as_ref() == Some(group) { rows.next().transpose() } else { Ok(None) }
}

fn read_edge(key: &[u8], value: &[u8]) -> Result<(EdgeKey, Edge), StoreError> {
    let Some(Key::Edge(edge_key)) = keys::read_row(key) else { return Err(keys::unreadable(key)) };
    Ok((edge_key, codec::read_edge(value)?))
}

fn read_object_total(key: &[u8]) -> Result<TotalKey, StoreError> {
    let bad = || keys::unreadable(key);
    let ([object, relation], kind) = keys::split::<2>(key).ok_or_else(bad)?;
    let object = ObjectId::new(object).map_err(|_| bad())?;
    let relation = Name::new(relation).map_err(|_| bad())?;
    if kind.is_empty() {
        return Ok(TotalKey::Object { object, relation });
    }
    let kind = std::str::from_utf8(kind).ok().and_then(|kind| Name::new(kind).ok()).ok_or_else(bad)?;
    Ok(TotalKey::Kind { object, relation, kind })
}

fn subject_total(group: &[u8]) -> Result<TotalKey, StoreError> {
    let bad = || keys::unreadable(group);
    let key = [&[keys::SUBJECT_TOTALS], group].concat();
    let ([subject, relation], _) = keys::split::<2>(&key).ok_or_else(bad)?;
    Ok(TotalKey::Subject {
        subject: SubjectId::new(subject).map_err(|_| bad())?,
        relation: Name::new(relation).map_err(|_| bad())?,
    })
}
