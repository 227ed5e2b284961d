//! Numbers that a commit takes of sequences.
//!
//! They are taken behind all other locks, so that whoever waits for the row of a sequence waits for a commit that is almost over.
//! Rows that carry them are put after that, in the same transaction, and reckon theirs from the row that it holds by then.

use std::collections::BTreeMap;

use tally_core::rows::{Changes, Declared, Home, SequenceKey};
use tokio_postgres::types::ToSql;

use crate::cells::{PARTITION_VALUE, Table};

/// Takes them and writes them down beside the commit, so that they are known when its answer is lost.
pub(crate) const TAKE: &str = "
WITH taken AS (
    INSERT INTO sequence AS s (home, name, last)
    SELECT w.home, w.name, w.n
    FROM unnest($1::text[], $2::text[], $3::int8[]) WITH ORDINALITY AS w(home, name, n, i) ORDER BY w.i
    ON CONFLICT (home, name) DO UPDATE SET last = s.last + excluded.last
    RETURNING s.home, s.name, s.last)
UPDATE lane SET numbers = ARRAY(
    SELECT t.last - w.n + 1
    FROM unnest($1::text[], $2::text[], $3::int8[]) WITH ORDINALITY AS w(home, name, n, i)
    JOIN taken t ON t.home = w.home AND t.name = w.name ORDER BY w.i)
WHERE id = $4 RETURNING numbers";

/// How many are taken of each sequence, in the order in which they are locked.
#[derive(Default)]
pub(crate) struct Numbers<'a> {
    homes: Vec<&'a str>,
    names: Vec<&'a str>,
    counts: Vec<i64>,
    /// Which of the changes each of them is.
    places: Vec<usize>,
}

impl<'a> Numbers<'a> {
    pub(crate) fn new(changes: &'a Changes) -> Self {
        let taken = changes.numbers.iter().enumerate();
        let taken: BTreeMap<&SequenceKey, (i64, usize)> =
            taken.map(|(place, (sequence, count))| (sequence, (i64::from(*count), place))).collect();
        let mut numbers = Self::default();
        for (sequence, (count, place)) in taken {
            numbers.homes.push(&sequence.home);
            numbers.names.push(&sequence.name);
            numbers.counts.push(count);
            numbers.places.push(place);
        }
        numbers
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(crate) fn values<'v>(&'v self, lane: &'v i64) -> Vec<&'v (dyn ToSql + Sync)> {
        vec![&self.homes, &self.names, &self.counts, lane]
    }

    /// The first of each, in the order of the changes.
    pub(crate) fn read(&self, told: &[i64]) -> Vec<u64> {
        let mut firsts = vec![0; self.places.len()];
        for (place, first) in self.places.iter().zip(told) {
            firsts[*place] = first.unsigned_abs();
        }
        firsts
    }
}

/// A number that is not given yet, as text: how many of those taken come after it. [`typed`] turns it into the number.
pub(crate) fn text(place: u32, count: u32) -> String {
    format!("#{}", count.saturating_sub(place).saturating_sub(1))
}

/// SQL for the number in a text, where `s` is the row of its sequence.
fn typed(text: &str) -> String {
    format!("CASE WHEN {text} LIKE '#%' THEN s.last - substr({text}, 2)::int8 ELSE {text}::int8 END")
}

impl Table {
    /// SQL that puts new rows with the numbers that were just taken.
    pub(crate) fn insert_numbered(self) -> String {
        let mut values: Vec<String> = self.columns().map(|column| self.typed_with(column, typed)).collect();
        if self.has_partitions() {
            values.push(PARTITION_VALUE.to_owned());
        }
        let (names, values, rows) = (self.names_of_new().join(", "), values.join(", "), self.rows_with_sequence());
        format!("INSERT INTO {} ({names}) SELECT {values} FROM {rows}", self.name())
    }

    /// SQL that gives numbers to rows that this transaction has changed already.
    pub(crate) fn change_numbered(self) -> String {
        let set = self.columns().skip(self.keys());
        let set: Vec<String> = set.map(|column| format!("{} = {}", column.0, self.typed_with(column, typed))).collect();
        let (set, rows) = (set.join(", "), self.rows_with_sequence());
        format!("UPDATE {} t SET {set} FROM {rows} WHERE {}", self.name(), self.same_key())
    }

    /// Rows as they travel, each with its partition and its sequence.
    fn rows_with_sequence(self) -> String {
        let key: Vec<String> = self.columns().take(self.keys()).map(|(name, _)| format!("w.{name}")).collect();
        format!("{} JOIN sequence s ON {}", self.new_rows(), self.is_sequence(&key))
    }

    /// `s` is the sequence of rows whose keys begin with these parts.
    pub(crate) fn is_sequence(self, key: &[String]) -> String {
        let Declared { kind, home, .. } = self.declared();
        let (name, Home::With(home)) = (kind.sequence().unwrap_or_default(), home) else { return String::new() };
        format!("s.home = {} AND s.name = '{name}'", key[*home])
    }
}
