//! The places of one order, counted: sixteen bytes each, see `keys::place_number`.

use std::collections::BTreeMap;
use std::ops::Bound;

use indexset::BTreeSet;
use tally_core::rows::OrderKey;
use tally_engine::StoreError;

use crate::ordered::PlaceSum;
use crate::store::{Row, Snapshot};
use crate::{keys, unavailable};

/// Places are read in chunks of so many.
pub(crate) const CHUNK_ROWS: usize = 8_192;

/// The places of one order, as numbers.
#[derive(Default)]
pub(crate) struct Places {
    numbers: BTreeSet<u128>,
    /// How many more there are of a place that several have: only where rows came from a store with several servers.
    more: BTreeMap<u128, u64>,
    /// What all of them add up to, for recounts.
    sum: PlaceSum,
}

impl Places {
    /// Those of an order, from the tables.
    pub(crate) fn read(snapshot: &Snapshot, key: &OrderKey) -> Result<Self, StoreError> {
        let mut order = Self::default();
        let prefix = keys::order_prefix(key);
        let end = keys::after_prefix(&prefix);
        let mut after: Option<Vec<u8>> = None;
        loop {
            let low = after.as_ref().map_or(Bound::Included(&prefix[..]), |after| Bound::Excluded(&after[..]));
            let rows = snapshot.scan((low, Bound::Excluded(&end[..])), CHUNK_ROWS, false).map_err(unavailable)?;
            let Some((last, _)) = rows.last() else { return Ok(order) };
            after = Some(last.to_vec());
            order.put_all(&rows, prefix.len())?;
        }
    }

    /// Places as they are in the tables, behind a prefix of so many bytes.
    pub(crate) fn put_all(&mut self, rows: &[Row], prefix: usize) -> Result<(), StoreError> {
        for (bytes, _) in rows {
            self.put(keys::read_number(bytes, prefix).ok_or_else(|| keys::unreadable(bytes))?);
        }
        Ok(())
    }

    pub(crate) fn sum(&self) -> PlaceSum {
        self.sum
    }

    pub(crate) fn put(&mut self, place: u128) {
        self.sum.put(place);
        if !self.numbers.insert(place) {
            *self.more.entry(place).or_default() += 1;
        }
    }

    pub(crate) fn remove(&mut self, place: u128) {
        let was_there = match self.more.get_mut(&place) {
            Some(1) => self.more.remove(&place).is_some(),
            Some(more) => {
                *more -= 1;
                true
            }
            None => self.numbers.remove(&place),
        };
        if was_there {
            self.sum.take(place);
        }
    }

    pub(crate) fn before(&self, place: u128) -> u64 {
        self.numbers.rank(&place) as u64 + self.more.range(..place).map(|(_, more)| more).sum::<u64>()
    }

    pub(crate) fn has(&self, place: u128) -> bool {
        self.numbers.contains(&place)
    }

    pub(crate) fn has_several(&self, place: u128) -> bool {
        self.more.contains_key(&place)
    }

    /// The place of a rank, and how many of the same place to leave out.
    pub(crate) fn at_rank(&self, rank: u64) -> Option<(u128, usize)> {
        let extra: u64 = self.more.values().sum();
        let index = usize::try_from(rank.saturating_sub(extra)).ok()?;
        let place = *self.numbers.get_index(index)?;
        let skip = usize::try_from(rank - self.before(place)).ok()?;
        Some((place, skip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::place_number;

    #[test]
    fn places_that_several_have_are_counted_each() {
        let mut order = Places::default();
        for score in [5, 5, 5, 9, 1] {
            order.put(place_number(score, 7));
        }
        let before = |order: &Places, score| order.before(place_number(score, 7));
        assert_eq!([9, 5, 1, 0].map(|score| before(&order, score)), [0, 1, 4, 5]);
        for rank in 0..5 {
            let (at, skip) = order.at_rank(rank).unwrap();
            assert_eq!(order.before(at) + skip as u64, rank, "so many are left out from there on");
        }
        assert_eq!(order.at_rank(5), None);
        order.remove(place_number(5, 7));
        order.remove(place_number(9, 7));
        assert_eq!([9, 5, 1, 0].map(|score| before(&order, score)), [0, 0, 2, 3]);
    }
}
