//! What is done about rows that are due. Each kind says it of itself: see `rows/kinds.rs`.

use crate::catalog::Catalog;
use crate::command::Command;
use crate::rows::{Key, RowKind, Typed};
use crate::time::Timestamp;

/// What is only cleaned up may lie for so long after it is due: then much of it goes in one step.
const CLEANED_WITHIN_MS: u64 = 5_000;

/// When rows of a kind are due, and what is done then.
pub(crate) struct WhenDue<K: Typed> {
    /// From when on; at once where there is no time yet.
    pub(crate) at: fn(&K::Row) -> Option<Timestamp>,
    /// What is done.
    pub(crate) settling: Settling,
}

impl<K: Typed> WhenDue<K> {
    /// When a row is due: see [`Row::due`](crate::rows::Row::due).
    pub(crate) fn of(&self, row: &K::Row) -> Timestamp {
        (self.at)(row).map_or(Timestamp(0), |at| at.max(Timestamp(1)))
    }
}

/// How rows of a kind are settled when they are due.
#[derive(Clone, Copy)]
pub struct Settling {
    /// What is due before this is somebody else's work, such as jobs that are open.
    pub from: Timestamp,
    /// So long after [`Row::due`](crate::rows::Row::due).
    pub after_ms: fn(&Catalog) -> u64,
    /// Nobody minds if it is done so much later.
    pub within_ms: u64,
    /// The command. Its rule looks at each of the rows again and at the time: a row that another server has settled meanwhile, or
    /// that is not due any more, is left alone. So whoever sends it need not be the only one, nor be right.
    pub command: fn(Vec<Key>) -> Command,
}

/// How rows of a kind are settled; nothing where they are never due.
pub fn settling(kind: RowKind) -> Option<Settling> {
    kind.settling()
}

impl Settling {
    /// Of what is only cleaned up.
    pub(crate) const fn cleaned(command: fn(Vec<Key>) -> Command) -> Self {
        Self { from: Timestamp(1), after_ms: |_| 0, within_ms: CLEANED_WITHIN_MS, command }
    }

    /// Rows that are due before this are to be settled now.
    pub fn before(&self, now: Timestamp, catalog: &Catalog) -> Timestamp {
        Timestamp(now.0.saturating_sub((self.after_ms)(catalog)))
    }

    /// By when a row that is due then should be settled.
    pub fn by(&self, due: Timestamp, catalog: &Catalog) -> Timestamp {
        due.plus_ms((self.after_ms)(catalog)).plus_ms(self.within_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_ever_due_is_settled_and_no_other() {
        for kind in RowKind::ALL {
            assert_eq!(settling(kind).is_some(), kind.declared().due.is_some(), "{kind:?}");
        }
    }
}
