//! Reading rows for a decision, and writing what was decided.

use std::sync::{MutexGuard, PoisonError};

use tally_core::rows::{Change, Changes, Edge, EdgeKey, Key, Row, SequenceKey, Side, TotalKey};
use tally_core::view::Wants;
use tally_engine::{CommitError, Committed, Loaded, Mark, Seen, StoreError, TooLarge};

use crate::store::{Batch, Moment, Position, Store};
use crate::{Embedded, codec, keys, store, unavailable};

impl Embedded {
    /// Every row asked for. One runner writes, so for its own loads nothing moves meanwhile; if
    /// somebody else commits, the mark says so, and still covers everything that was seen.
    ///
    /// None where an order has to be read first, or where rows were taken back meanwhile.
    pub(crate) fn read_rows(&self, wants: &Wants) -> Result<Option<Loaded>, StoreError> {
        let before = self.store.moment();
        let keys: Vec<Vec<u8>> = wants.rows.iter().map(keys::row).chain(wants.totals.iter().map(keys::total)).collect();
        let mut values = self.store.get_many(&keys).map_err(unavailable)?.into_iter();
        let Some(ranks) = self.orders.before(&self.store, &wants.ranks, before.taken_back)? else { return Ok(None) };
        let Some(mark) = mark_of(before, self.store.moment()) else { return Ok(None) };
        let mut rows = Vec::with_capacity(wants.rows.len());
        for (key, value) in wants.rows.iter().zip(values.by_ref()) {
            rows.push(value.map(|bytes| codec::read_row(key, &bytes)).transpose()?);
        }
        let totals = values.map(|value| value.map_or(Ok(0), |bytes| codec::read_total(&bytes)));
        let totals = totals.collect::<Result<_, _>>()?;
        Ok(Some(Loaded { rows, totals, ranks, mark, ..Loaded::default() }))
    }

    /// Checks what was decided on, then applies everything as one batch.
    pub(crate) fn write_rows(&self, seen: &Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        let mut batch = self.committing();
        let made = self.gather(seen, changes, &mut batch)?;
        self.put(made, changes, &mut batch)
    }

    pub(crate) fn put(&self, made: Gathered, changes: &Changes, batch: &mut Batch) -> Result<Committed, CommitError> {
        let position = self.store.apply_if(batch, made.on).map_err(|error| match error {
            store::StoreError::BatchTooLarge { .. } => CommitError::Store(StoreError::TooLarge(TooLarge::Changes)),
            error => CommitError::Store(unavailable(error)),
        });
        batch.shrink();
        // What it was made from was taken back while it was gathered.
        let position = position?.ok_or(CommitError::Conflict)?;
        self.orders.note(position, made.given.as_ref().unwrap_or(changes));
        // Ranks are loaded, and one runner writes.
        Ok(Committed { mark: mark_at(position), totals: made.totals, ranks: None, numbers: made.numbers })
    }

    /// Fills the batch, from rows that are checked against what was decided on.
    pub(crate) fn gather(
        &self,
        seen: &Seen<'_>,
        changes: &Changes,
        batch: &mut Batch,
    ) -> Result<Gathered, CommitError> {
        let on = self.store.moment();
        let untouched = mark_at(on.position) == seen.mark;
        if !untouched {
            self.check_seen(seen)?;
        }
        batch.clear();
        let numbers = self.give(changes, batch)?;
        let given = changes.given(&numbers).map_err(StoreError::from)?;
        for (key, change) in given.as_ref().map_or(&changes.rows, |given| &given.rows) {
            write_row(batch, key, change);
            // No need to gather the rest of what will be refused.
            if batch.bytes() > self.store.batch_bytes_max() {
                batch.shrink();
                return Err(CommitError::Store(StoreError::TooLarge(TooLarge::Changes)));
            }
        }
        let mut totals = Vec::new();
        for (key, by) in &changes.adds {
            // Nothing was written since the load, so the view's own sum is what the total becomes.
            let after = match seen.view.final_total(key).filter(|_| untouched) {
                Some(after) => after,
                None => self.read_total(key)?.checked_add(*by).ok_or(CommitError::Conflict)?,
            };
            write_total(batch, key, after);
            totals.push(after);
        }
        batch.put(&keys::stamp(), &changes.stamp.0.to_be_bytes());
        Ok(Gathered { on, totals: (!untouched).then_some(totals), numbers, given })
    }

    /// The first number of each sequence, and where each ends now. One commits at a time, and what this stands on is checked when
    /// the batch is applied; so nobody else is given the same.
    fn give(&self, changes: &Changes, batch: &mut Batch) -> Result<Vec<u64>, StoreError> {
        let mut numbers = Vec::with_capacity(changes.numbers.len());
        for (sequence, count) in &changes.numbers {
            let key = sequence.key();
            let bytes = self.store.get(&keys::row(&key)).map_err(unavailable)?;
            let row = bytes.map(|bytes| codec::read_row(&key, &bytes)).transpose()?;
            let taken = SequenceKey::take(SequenceKey::last(row.as_ref()), *count);
            let (first, after) = taken.ok_or_else(|| StoreError::Broken(sequence.exhausted()))?;
            batch.put(&keys::row(&key), &codec::write_row(&after));
            numbers.push(first);
        }
        Ok(numbers)
    }

    pub(crate) fn committing(&self) -> MutexGuard<'_, Batch> {
        // The batch is cleared before use, so what a panic left in it does not matter.
        self.committing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_seen(&self, seen: &Seen<'_>) -> Result<(), CommitError> {
        for (key, row) in seen.view.seen() {
            let bytes = self.store.get(&keys::row(key)).map_err(unavailable)?;
            let now = bytes.map(|bytes| codec::read_row(key, &bytes)).transpose()?;
            if now != *row {
                return Err(CommitError::Conflict);
            }
        }
        for (key, value) in seen.view.seen_totals() {
            if self.read_total(key)? != value {
                return Err(CommitError::Conflict);
            }
        }
        let (standings, ranks): (Vec<_>, Vec<u64>) =
            seen.view.seen_ranks().map(|(standing, before)| (standing.clone(), before)).unzip();
        let now = self.orders.before(&self.store, &standings, self.store.moment().taken_back)?;
        // An order that has to be read first is read by the next load.
        if now.is_none_or(|now| now != ranks) { Err(CommitError::Conflict) } else { Ok(()) }
    }

    fn read_total(&self, key: &TotalKey) -> Result<i64, StoreError> {
        let bytes = self.store.get(&keys::total(key)).map_err(unavailable)?;
        bytes.map_or(Ok(0), |bytes| codec::read_total(&bytes))
    }
}

/// A batch that was filled.
pub(crate) struct Gathered {
    /// What it stands on.
    on: Moment,
    /// What the totals become, where that was not known at the load.
    totals: Option<Vec<i64>>,
    /// The first number of each sequence.
    numbers: Vec<u64>,
    /// The changes with their numbers, where they have any.
    given: Option<Changes>,
}

/// The moment of one position: twice the position.
fn mark_at(position: Position) -> Mark {
    Mark(position << 1)
}

/// A read that began at one moment and ended at another. It may have seen everything up to the
/// end, which is what must be durable before it is answered; and it is odd, so that no commit takes
/// it for a moment at which all of it was true. None where rows were taken back in between: it may
/// have seen those, whatever the positions are, and has to be done again.
pub(crate) fn mark_of(before: Moment, after: Moment) -> Option<Mark> {
    let seen = before.position.max(after.position);
    let mark = Mark(mark_at(seen).0 + u64::from(before.position != after.position));
    (before.taken_back == after.taken_back).then_some(mark)
}

/// Whether all that was read was so at one moment.
pub(crate) fn is_of_one(mark: Mark) -> bool {
    mark.0.is_multiple_of(2)
}

/// Reads until nothing is taken back meanwhile.
pub(crate) fn marked<T>(
    store: &Store,
    mut read: impl FnMut() -> Result<T, StoreError>,
) -> Result<(T, Mark), StoreError> {
    loop {
        let before = store.moment();
        let found = read()?;
        if let Some(mark) = mark_of(before, store.moment()) {
            return Ok((found, mark));
        }
    }
}

/// The last position that a mark covers.
pub(crate) fn position_of(mark: Mark) -> Position {
    mark.0 >> 1
}

fn write_total(batch: &mut Batch, key: &TotalKey, value: i64) {
    match value {
        0 => batch.delete(&keys::total(key)),
        value => batch.put(&keys::total(key), &codec::write_total(value)),
    }
}

/// A row, and the orderings in which it stands.
fn write_row(batch: &mut Batch, key: &Key, change: &Change) {
    match &change.after {
        Some(row) => batch.put(&keys::row(key), &codec::write_row(row)),
        None => batch.delete(&keys::row(key)),
    }
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    if let Key::Edge(key) = key {
        return write_lists(batch, key, before.and_then(as_edge), after.and_then(as_edge));
    }
    let (was, is) = (before.and_then(Row::due), after.and_then(Row::due));
    if was != is {
        was.iter().for_each(|at| batch.delete(&keys::due(key, *at)));
        is.iter().for_each(|at| batch.put(&keys::due(key, *at), b""));
    }
    if let Some(moved) = change.moves(key) {
        moved.before.iter().for_each(|place| batch.delete(&keys::order_entry(&moved.order, place)));
        moved.after.iter().for_each(|place| batch.put(&keys::order_entry(&moved.order, place), b""));
    }
}

fn write_lists(batch: &mut Batch, key: &EdgeKey, before: Option<&Edge>, after: Option<&Edge>) {
    for side in [Side::Object, Side::Subject] {
        let entry = |edge| keys::list_entry(key, edge, side);
        let (was, is) = (before.map(entry), after.map(entry));
        if let Some(was) = was.filter(|was| Some(was) != is.as_ref()) {
            batch.delete(&was);
        }
        if let (Some(is), Some(edge)) = (is, after) {
            batch.put(&is, &codec::write_attached(edge));
        }
    }
}

fn as_edge(row: &Row) -> Option<&Edge> {
    if let Row::Edge(edge) = row { Some(edge) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_may_have_seen_what_was_taken_back_has_no_mark() {
        let moment = |position, taken_back| Moment { position, taken_back };
        assert_eq!(mark_of(moment(8, 0), moment(8, 0)), Some(mark_at(8)));
        assert_eq!(mark_of(moment(8, 0), moment(9, 0)).map(position_of), Some(9));
        assert_ne!(mark_of(moment(8, 0), moment(9, 0)), Some(mark_at(9)), "no commit takes it for one moment");
        // Nine came and went in between.
        assert_eq!(mark_of(moment(8, 0), moment(8, 1)), None);
        assert_eq!(mark_of(moment(9, 0), moment(8, 1)), None);
        // Refused before, and gone only now.
        assert_eq!(mark_of(moment(9, 1), moment(8, 2)), None);
    }
}
