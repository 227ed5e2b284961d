//! What is to be loaded.

use crate::rows::{Key, Standing, TotalKey};

/// Rows, totals and ranks to load.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wants {
    /// Rows that decisions stand on.
    pub rows: Vec<Key>,
    /// Totals that are shown or decided on.
    pub totals: Vec<TotalKey>,
    /// Points in orders of which is asked how many rows stand before them.
    pub ranks: Vec<Standing>,
}

impl Wants {
    /// These rows alone.
    pub fn rows(rows: Vec<Key>) -> Self {
        Self { rows, ..Self::default() }
    }

    /// These totals alone.
    pub fn totals(totals: Vec<TotalKey>) -> Self {
        Self { totals, ..Self::default() }
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.totals.is_empty() && self.ranks.is_empty()
    }
}
