//! Orders against the rows in them: the table of places, and what of it is in memory.
//!
//! Rows and places have their orders one after the other in the same way, so each is added up from both in one pass.

use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Bound;

use tally_core::rows::{OrderKey, RowKind};
use tally_engine::{Finding, StoreError};

use crate::audit::{Audit, Table};
use crate::orders::row_at;
use crate::store::{Batch, Row};
use crate::{Embedded, codec, keys, unavailable};

/// Rows that are looked at together while nobody commits.
pub(crate) const ROWS_AT_ONCE: usize = 1_024;

/// What places add up to, in whatever order they come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PlaceSum {
    places: u64,
    sum: u64,
}

impl PlaceSum {
    pub(crate) fn put(&mut self, place: u128) {
        (self.places, self.sum) = (self.places.wrapping_add(1), self.sum.wrapping_add(mixed(place)));
    }

    pub(crate) fn take(&mut self, place: u128) {
        (self.places, self.sum) = (self.places.wrapping_sub(1), self.sum.wrapping_sub(mixed(place)));
    }
}

fn mixed(place: u128) -> u64 {
    let high = ((place >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (high ^ (high >> 29)).wrapping_add(place as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (word ^ (word >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// The entries of one order, of either table: what they add up to, ids and all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct EntrySum {
    places: PlaceSum,
    entries: u64,
}

impl EntrySum {
    /// An entry, of an order that so many bytes name.
    fn put(&mut self, entry: &[u8], named: usize) -> Result<(), StoreError> {
        self.places.put(keys::read_number(entry, named + 1).ok_or_else(|| keys::unreadable(entry))?);
        self.entries = self.entries.wrapping_add(tally_core::hash::fingerprint(&[entry]));
        Ok(())
    }
}

impl Audit<'_> {
    /// Every row that stands in an order has its place there, and nothing else has.
    pub(crate) fn orders(&mut self, mut in_memory: HashMap<OrderKey, PlaceSum>) -> Result<(), StoreError> {
        let standing = RowKind::ALL.into_iter().filter(|kind| kind.stands());
        let mut letters: Vec<u8> = standing.map(|kind| kind.declared().letter).collect();
        letters.sort_unstable();
        let tables: Vec<Table<'_>> = letters.into_iter().map(|letter| self.table(letter)).collect();
        let mut rows = tables.into_iter().flatten().peekable();
        let mut entries = self.table(keys::ORDERS).peekable();
        loop {
            let (one, other) = (peek_order(&mut rows, 0)?, peek_order(&mut entries, 1)?);
            let Some((name, order)) = one.into_iter().chain(other).min_by(|one, other| one.0.cmp(&other.0)) else {
                break;
            };
            let (mut said, mut counted) = (EntrySum::default(), EntrySum::default());
            while let Some((bytes, value)) = next_of(&mut rows, &name, 0)? {
                self.read(1);
                let key = keys::read_row(&bytes).ok_or_else(|| keys::unreadable(&bytes))?;
                if let Some((_, place)) = codec::read_row(&key, &value)?.stands(&key) {
                    counted.put(&keys::order_entry(&order, &place), name.len())?;
                }
            }
            while let Some((bytes, _)) = next_of(&mut entries, &name, 1)? {
                self.read(1);
                said.put(&bytes, name.len())?;
            }
            let held = in_memory.remove(&order);
            if said != counted {
                self.out_of_order("an order in the tables", order, said.places, counted.places);
            } else if let Some(held) = held.filter(|held| *held != counted.places) {
                self.out_of_order("an order in memory", order, held, counted.places);
            }
        }
        for (order, held) in in_memory.into_iter().filter(|(_, held)| *held != PlaceSum::default()) {
            self.out_of_order("an order in memory", order, held, PlaceSum::default());
        }
        Ok(())
    }

    fn out_of_order(&mut self, what: &str, order: OrderKey, said: PlaceSum, counted: PlaceSum) {
        let (said, counted) = (said.places, counted.places);
        let found = format!("{what} does not agree with its rows: {order:?} has {said} places and {counted} rows");
        (self.tell)(Finding::Order { found, order });
    }
}

/// The order of the next row, and its name in bytes: a letter and the parts of keys, behind so many bytes of the table.
fn peek_order(
    rows: &mut Peekable<impl Iterator<Item = Result<Row, StoreError>>>,
    skip: usize,
) -> Result<Option<(Vec<u8>, OrderKey)>, StoreError> {
    match rows.peek() {
        Some(Ok((key, _))) => {
            let name = &key[skip..];
            let (order, named) = keys::read_order(name).ok_or_else(|| keys::unreadable(key))?;
            Ok(Some((name[..named].to_vec(), order)))
        }
        Some(Err(error)) => Err(error.clone()),
        None => Ok(None),
    }
}

/// The next row, if it is of this order.
fn next_of(
    rows: &mut Peekable<impl Iterator<Item = Result<Row, StoreError>>>,
    name: &[u8],
    skip: usize,
) -> Result<Option<Row>, StoreError> {
    let is_of = |row: &Result<Row, StoreError>| row.as_ref().map_or(true, |(key, _)| key[skip..].starts_with(name));
    rows.next_if(is_of).transpose()
}

impl Embedded {
    /// Makes an order that of its rows, some rows at a time. False where it is already.
    pub(crate) async fn mend_order(&self, order: &OrderKey) -> Result<bool, StoreError> {
        let prefix = keys::order_prefix(order);
        let wrong = |bytes: &[u8], _: &[u8], batch: &mut Batch| self.wrong_entry(order, prefix.len(), bytes, batch);
        let entries = self.mend_rows(&prefix, wrong).await?;
        let missing = |bytes: &[u8], value: &[u8], batch: &mut Batch| self.missing_entry(bytes, value, batch);
        // Rows have the same name behind the letter of the table of orders.
        let rows = self.mend_rows(&prefix[1..], missing).await?;
        let _nobody_commits = self.committing();
        // Whatever was in memory is read anew.
        let in_memory = self.orders.sums(self.store.taken_back()).contains_key(order);
        self.orders.read_anew(order);
        Ok(entries || rows || in_memory)
    }

    /// An entry goes if its row is not there, or stands elsewhere.
    fn wrong_entry(
        &self,
        order: &OrderKey,
        prefix: usize,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> Result<bool, StoreError> {
        let at = keys::read_place(bytes, prefix).and_then(|place| Some((order.key(&place.id)?, place)));
        let stands = match at {
            Some((key, place)) => row_at(&self.store, &key, &place)?.is_some(),
            None => false,
        };
        if !stands {
            batch.delete(bytes);
        }
        Ok(!stands)
    }

    /// A row that stands and has no entry gets one.
    fn missing_entry(&self, bytes: &[u8], value: &[u8], batch: &mut Batch) -> Result<bool, StoreError> {
        let key = keys::read_row(bytes).ok_or_else(|| keys::unreadable(bytes))?;
        let Some((order, place)) = codec::read_row(&key, value)?.stands(&key) else { return Ok(false) };
        let entry = keys::order_entry(&order, &place);
        let is_missing = self.store.get(&entry).map_err(unavailable)?.is_none();
        if is_missing {
            batch.put(&entry, b"");
        }
        Ok(is_missing)
    }

    /// Goes over the rows behind a prefix, and writes what follows from each of them.
    async fn mend_rows(
        &self,
        prefix: &[u8],
        mend: impl Fn(&[u8], &[u8], &mut Batch) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        let (mut from, end) = (Bound::Included(prefix.to_vec()), keys::after_prefix(prefix));
        let mut mended = false;
        loop {
            self.store.ready().await.map_err(unavailable)?;
            let (position, last) = {
                let mut batch = self.committing();
                batch.clear();
                let on = self.store.moment();
                let range = (from.as_ref().map(Vec::as_slice), Bound::Excluded(&end[..]));
                let rows = self.store.scan(range, ROWS_AT_ONCE, false).map_err(unavailable)?;
                let mut wrong = false;
                for (key, value) in &rows {
                    wrong |= mend(key, value, &mut batch)?;
                }
                let last = rows.last().filter(|_| rows.len() == ROWS_AT_ONCE).map(|(key, _)| key.to_vec());
                mended |= wrong;
                (if wrong { Some(self.store.apply_if(&batch, on).map_err(unavailable)?) } else { None }, last)
            };
            if let Some(position) = position {
                // What it was made from was taken back meanwhile.
                let position =
                    position.ok_or_else(|| StoreError::Unavailable("rows were taken back; try again".into()))?;
                self.store.wait(position).await.map_err(unavailable)?;
            }
            match last {
                Some(last) => from = Bound::Excluded(last),
                None => return Ok(mended),
            }
        }
    }
}
