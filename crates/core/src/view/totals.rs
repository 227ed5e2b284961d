//! Totals: shown, decided on, added to.

use super::looks::Look;
use super::{BLIND_MAX, Slot, State, Stop, Undo, View};
use crate::error::Refusal;
use crate::rows::TotalKey;

impl View {
    /// Whether a total may be added to without being loaded.
    pub(super) fn may_be_blind(&self, key: &TotalKey, by: i64) -> bool {
        // Taking away from what is shown must not lead below zero, so somebody has to look; and so near a counter's ends.
        let may = match key {
            TotalKey::Subject { .. } => true,
            TotalKey::Counter(_) => !self.exact && !self.careful && by.unsigned_abs() <= BLIND_MAX,
            _ => !self.exact && by >= 0,
        };
        self.is_far() && may
    }

    pub(super) fn miss_total(&mut self, key: &TotalKey) -> bool {
        let missing = Slot { loaded: 0, now: 0, state: State::Missing, guarded: false, load: 0 };
        let slot = self.totals.entry(key.clone()).or_insert(Slot { state: State::Blind, ..missing });
        if slot.state != State::Missing {
            slot.state = State::Missing;
            self.missing.totals.push(key.clone());
        }
        false
    }

    /// Shows a total without deciding on it: the answer's count, at no cost. An answer that is written down cannot be
    /// corrected afterwards, so there it is as good as decided on.
    pub fn total(&mut self, key: &TotalKey) -> Result<i64, Stop> {
        if self.exact {
            return self.total_decided(key);
        }
        match self.totals.get(key) {
            Some(slot) if slot.state != State::Missing => {
                let now = slot.now;
                self.look(Look::Shown(key.clone(), now));
                Ok(now)
            }
            _ => {
                self.miss_total(key);
                Err(Stop::Miss)
            }
        }
    }

    /// Reads a total that the decision stands on: if it moves before the commit, that is a conflict.
    pub fn total_decided(&mut self, key: &TotalKey) -> Result<i64, Stop> {
        match self.totals.get_mut(key).filter(|slot| slot.state == State::Loaded) {
            Some(slot) => {
                slot.guarded = true;
                let now = slot.now;
                self.look(Look::Decided(key.clone()));
                Ok(now)
            }
            None => {
                self.miss_total(key);
                Err(Stop::Miss)
            }
        }
    }

    /// Reads a total without showing it or standing on it; see [`View::peek`].
    pub fn peek_total(&mut self, key: &TotalKey) -> Result<i64, Stop> {
        match self.totals.get(key).filter(|slot| slot.state == State::Loaded) {
            Some(slot) => Ok(slot.now),
            None => {
                self.miss_total(key);
                Err(Stop::Miss)
            }
        }
    }

    /// Adds to a total, and gives it as it is afterwards. Nothing ever clamps: a total that would
    /// fall below zero is a defect, and is refused loudly.
    pub fn add(&mut self, key: &TotalKey, by: i64) -> Result<i64, Stop> {
        if !self.totals.contains_key(key) && self.may_be_blind(key, by) {
            let blind = Slot { loaded: 0, now: 0, state: State::Blind, guarded: false, load: 0 };
            self.totals.insert(key.clone(), blind);
        }
        let blind = self.may_be_blind(key, by);
        let usable = |slot: &&mut Slot<i64>| match slot.state {
            State::Loaded => true,
            State::Blind => blind,
            State::Missing => false,
        };
        let Some(slot) = self.totals.get_mut(key).filter(usable) else {
            self.miss_total(key);
            return Err(Stop::Miss);
        };
        let known = slot.state == State::Loaded;
        let counter = matches!(key, TotalKey::Counter(_));
        let after = slot.now.checked_add(by).filter(|after| *after >= 0 || by > 0 || !known || counter);
        // What the batch adds as a whole is a number as well.
        let after = after.filter(|after| after.checked_sub(slot.loaded).is_some());
        let Some(after) = after else {
            // What is refused because of it stands on it.
            let now = slot.now;
            self.look(Look::Decided(key.clone()));
            let refusal = if counter {
                Refusal::Conflict(format!("{by} more or less would overflow the counter, which is at {now}"))
            } else {
                Refusal::Broken(format!("{key:?} would become {now}{by:+}"))
            };
            return Err(refusal.into());
        };
        self.undo.push(Undo::Total(key.clone(), slot.now));
        slot.now = after;
        Ok(after)
    }

    /// Counts a parent's total into the cost: it was read and written for the caller.
    pub fn charge_total(&mut self) {
        self.cost.reads += 1;
        self.cost.writes += 1;
    }
}
