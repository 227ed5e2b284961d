//! The places of one order, counted: sixteen bytes each, see `keys::place_number`.

use std::collections::BTreeMap;

use indexset::BTreeSet;

/// The places of one order, as numbers.
#[derive(Default)]
pub(crate) struct Places {
    numbers: BTreeSet<u128>,
    /// How many more there are of a place that several have: only where rows came from a store with several servers.
    more: BTreeMap<u128, u64>,
}

impl Places {
    pub(crate) fn put(&mut self, place: u128) {
        if !self.numbers.insert(place) {
            *self.more.entry(place).or_default() += 1;
        }
    }

    pub(crate) fn remove(&mut self, place: u128) {
        match self.more.get_mut(&place) {
            Some(1) => _ = self.more.remove(&place),
            Some(more) => *more -= 1,
            None => _ = self.numbers.remove(&place),
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
