//! Numbers of sequences that the batch takes: the store gives them at the commit.

use std::collections::BTreeMap;

use super::looks::Look;
use super::{Slot, State, Undo, View};
use crate::rows::{Key, Seq, SequenceKey};

impl View {
    /// Takes the next number of a sequence. Rows of the sequence's home carry it in their key or in a column. What is taken back
    /// leaves no hole, and nobody else's taking is in the way.
    pub fn take_number(&mut self, sequence: &SequenceKey) -> Seq {
        let taken = self.numbers.entry(sequence.clone()).or_insert(0);
        let place = *taken;
        *taken += 1;
        self.undo.push(Undo::Number(sequence.clone()));
        Seq::Taken(place)
    }

    /// A row whose number is not given yet is new: no store has it, so there is nothing to load and nothing to guard.
    pub(super) fn make_room_for(&mut self, key: &Key) -> bool {
        let is_new = key.is_taken();
        if is_new {
            let slot = Slot { loaded: None, now: None, state: State::Loaded, guarded: false, load: 0 };
            self.rows.entry(key.clone()).or_insert(slot);
        }
        is_new
    }

    /// Looks at a row. One whose number is not given yet is looked at only where the batch has made it.
    pub(super) fn look_at_row(&mut self, key: &Key, is_there: bool) {
        if self.is_far() && (is_there || !key.is_taken()) {
            self.look(Look::Row(key.clone()));
        }
    }
}

/// Takes the last number back that was taken.
pub(super) fn give_back(numbers: &mut BTreeMap<SequenceKey, u32>, sequence: &SequenceKey) {
    if let Some(taken) = numbers.get_mut(sequence) {
        *taken -= 1;
        if *taken == 0 {
            numbers.remove(sequence);
        }
    }
}
