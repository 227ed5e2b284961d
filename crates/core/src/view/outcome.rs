//! What a batch comes to: its changes, and what they stand on.

use super::View;
use crate::rows::{Change, Changes, Key, Row, TotalKey};
use crate::time::Stamp;

impl View {
    /// The batch's changes: only what really differs from what was loaded.
    pub fn changes(&self, stamp: Stamp) -> Changes {
        let rows = self
            .rows
            .iter()
            .filter(|(_, slot)| slot.loaded != slot.now)
            .map(|(key, slot)| (key.clone(), Change { before: slot.loaded.clone(), after: slot.now.clone() }))
            .collect();
        let adds = self
            .totals
            .iter()
            .filter(|(_, slot)| slot.loaded != slot.now)
            .map(|(key, slot)| (key.clone(), slot.now - slot.loaded))
            .chain(self.tells.iter().map(|key| (key.clone(), 0)))
            .collect();
        let numbers = self.numbers.iter().map(|(sequence, taken)| (sequence.clone(), *taken)).collect();
        Changes { rows, adds, numbers, stamp }
    }

    /// Every row that the decisions stand on, as it was loaded.
    pub fn seen(&self) -> impl Iterator<Item = (&Key, &Option<Row>)> {
        self.rows.iter().filter(|(_, slot)| slot.guarded).map(|(key, slot)| (key, &slot.loaded))
    }

    /// Every total that a decision stands on, as it was.
    pub fn seen_totals(&self) -> impl Iterator<Item = (&TotalKey, i64)> {
        self.totals.iter().filter(|(_, slot)| slot.guarded).map(|(key, slot)| (key, slot.loaded))
    }

    /// A total after the whole batch; of one that was not loaded, its change.
    pub fn final_total(&self, key: &TotalKey) -> Option<i64> {
        self.totals.get(key).map(|slot| slot.now)
    }
}
