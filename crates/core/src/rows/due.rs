//! What is due is in partitions, so that several servers share the work: each partition is worked on by one server at a
//! time. What is kept together is in one partition and so is worked on together.

use super::{Cell, Home, Key, RowKind};
use crate::hash::{crc16, slot};

/// How many partitions there are. Never changed: stores keep what is due by them.
pub const DUE_PARTITIONS: u8 = 64;

/// Some of the partitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Partitions(u64);

impl Partitions {
    /// All of them.
    pub const ALL: Self = Self(u64::MAX);
    /// None of them.
    pub const NONE: Self = Self(0);

    /// One of them.
    pub fn one(partition: u8) -> Self {
        Self(1 << (partition % DUE_PARTITIONS))
    }

    /// Whether this one is among them.
    pub fn contains(self, partition: u8) -> bool {
        self.0 & Self::one(partition).0 != 0
    }

    /// These and those.
    #[must_use]
    pub fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These, but not those.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Those that are in both.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// How many.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..DUE_PARTITIONS).filter(move |partition| self.contains(*partition))
    }
}

impl FromIterator<u8> for Partitions {
    fn from_iter<T: IntoIterator<Item = u8>>(partitions: T) -> Self {
        partitions.into_iter().fold(Self::NONE, |some, partition| some.with(Self::one(partition)))
    }
}

impl RowKind {
    /// In which partitions rows of this kind may be.
    pub fn partitions(self) -> Partitions {
        match self.declared().home {
            Home::With(_) | Home::Spread => Partitions::ALL,
            Home::Store => Partitions::one(0),
        }
    }
}

impl Key {
    /// The partition of the row, which follows from its home. It is that of the home's [`slot`], so that in a Cluster of
    /// Redis a partition has a 64th of the slots to itself.
    pub fn partition(&self) -> u8 {
        let cells = || self.to_cells();
        let number = match self.kind().declared().home {
            Home::With(home) => match cells().get(home) {
                Some(Cell::Text(home)) => slot(home),
                // A home is a text: a test sees to it.
                _ => 0,
            },
            Home::Spread => {
                let parts: Vec<String> = cells().iter().map(Cell::to_string).collect();
                crc16(parts.join("\0").bytes())
            }
            Home::Store => 0,
        };
        (number % u16::from(DUE_PARTITIONS)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_a_set() {
        let some: Partitions = [0, 5, 63].into_iter().collect();
        assert_eq!((some.len(), some.contains(5), some.contains(6)), (3, true, false));
        assert_eq!(some.iter().collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(some.without(Partitions::one(5)).iter().collect::<Vec<_>>(), [0, 63]);
        assert_eq!(some.and(Partitions::one(5)), Partitions::one(5));
        assert_eq!(Partitions::NONE.with(Partitions::ALL).len(), u32::from(DUE_PARTITIONS));
        assert!(Partitions::NONE.is_empty() && !some.is_empty());
    }

    #[test]
    fn every_partition_has_some_of_many_homes() {
        let limit = |n: u32| Key::Limit(super::super::LimitKey { name: "posting".into(), key: format!("user{n}") });
        let replay = |n: u32| Key::Replay(super::super::ReplayKey { caller: "app".into(), key: format!("request{n}") });
        for key in [limit as fn(u32) -> Key, replay] {
            let found: Partitions = (0..2_000).map(|n| key(n).partition()).collect();
            assert_eq!(found, Partitions::ALL);
        }
        // Stores keep rows by it, so it stays as it is.
        assert_eq!((limit(1).partition(), replay(1).partition()), (42, 28));
    }
}
