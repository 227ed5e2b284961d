//! What a commit changes beyond rows that are one text: numbers, orders, what is due, and what it takes of sequences.

use tally_core::rows::{Change, Changes, Key, Row, Standing};
use tally_core::view::View;
use tally_engine::StoreError;

use crate::gaps::Gapped;
use crate::orders::{element, order_score, point_words};
use crate::part::Word::{Gapped as G, Key as K, NoKey, Text as T};
use crate::places::{NumberAt, Place, entry_of};
use crate::plan::Plan;
use crate::rows::row_text;

impl Plan<'_> {
    /// A row that is a field of a hash which is listed in its slot.
    pub(crate) fn change_field(&mut self, key: &Key, hash: &str, field: &str, text: Option<&str>) {
        let (index, entry) = (self.index_of(hash), entry_of(key).unwrap_or_default());
        let part = self.part(hash);
        match text {
            Some(text) => part.change("F", &[K(hash), T(field), T(text), K(&index), T(&entry)]),
            None => part.change("f", &[K(hash), T(field), K(&index), T(&entry)]),
        }
    }

    /// Adds to a number. The script refuses what would not fit, before it changes anything.
    pub(crate) fn add_number(&mut self, number: NumberAt, by: i64) {
        let NumberAt { hash, field, entry } = number;
        let index = entry.is_some().then(|| self.index_of(&hash));
        let (by, entry) = (by.to_string(), entry.unwrap_or_default());
        let index = index.as_deref().map_or(NoKey, K);
        self.part(&hash).change("N", &[K(&hash), T(&field), T(&by), index, T(&entry)]);
    }

    /// When a row is due.
    pub(crate) fn change_due(&mut self, home: &str, key: &Key, change: &Change) -> Result<(), StoreError> {
        let (was, will) = (change.before.as_ref().and_then(Row::due), change.after.as_ref().and_then(Row::due));
        if was == will {
            return Ok(());
        }
        let due = self.keys.due(key.kind(), self.keys.part(home), key.partition());
        let member = Gapped::due_member(self.keys, key)?;
        match will {
            Some(at) => self.part(home).change("z", &[K(&due), G(&member), T(&at.0.to_string())]),
            None => self.part(home).change("x", &[K(&due), G(&member)]),
        }
        Ok(())
    }

    /// Takes the numbers of sequences, and asks for the last of each: they come behind the totals and the ranks, which are so many.
    pub(crate) fn take_numbers(&mut self, changes: &Changes, others: usize) {
        for (place, (sequence, count)) in changes.numbers.iter().enumerate() {
            let key = sequence.key();
            let Place::Field(hash, field) = self.keys.place(&key) else { continue };
            let (index, entry) = (self.index_of(&hash), entry_of(&key).unwrap_or_default());
            self.by.push(i64::from(*count));
            let part = self.part(&hash);
            part.takes += 1;
            part.change("Q", &[K(&hash), T(&field), T(&count.to_string()), K(&index), T(&entry)]);
            part.tell(others + place, "k", &[K(&hash), T(&field)]);
        }
    }

    /// A row that carries numbers which only the script knows. They are of a sequence in the same slot, since that has the same
    /// home. False where it carries none.
    pub(crate) fn put_numbered(&mut self, key: &Key, change: &Change) -> Result<bool, StoreError> {
        let Some(after) = change.after.as_ref().filter(|row| key.is_taken() || row.is_taken()) else {
            return Ok(false);
        };
        let (before, text) = (change.before.as_ref().map(row_text).transpose()?, Gapped::row(self.keys, key, after)?);
        let home = match self.keys.place(key) {
            Place::Key(home) => {
                let (index, entry) = (self.index_of(&home), entry_of(key).unwrap_or_default());
                let part = self.part(&home);
                match &before {
                    None => part.check("n", true, &[K(&home)]),
                    Some(before) => part.check("s", true, &[K(&home), T(before)]),
                }
                part.change("S", &[K(&home), G(&text), K(&index), T(&entry)]);
                home
            }
            Place::Field(hash, field) => {
                let field = Gapped::field(self.keys, key, field)?;
                let (index, entry) = (self.index_of(&hash), entry_of(key).unwrap_or_default());
                let part = self.part(&hash);
                match &before {
                    None => part.check("g", true, &[K(&hash), G(&field)]),
                    Some(before) => part.check("h", true, &[K(&hash), G(&field), T(before)]),
                }
                part.change("F", &[K(&hash), G(&field), G(&text), K(&index), T(&entry)]);
                hash
            }
        };
        self.change_order(key, change);
        self.change_due(&home, key, change)?;
        Ok(true)
    }

    /// Checks the ranks that are written down, and asks for those that are shown: they come behind the totals, which are so
    /// many.
    pub(crate) fn put_ranks(&mut self, view: &View, totals: usize) {
        for (standing, before) in view.seen_ranks() {
            let (order, [among, score, element]) = (self.keys.order(&standing.order), point_words(standing));
            let words = [K(&order), T(&among), T(&score), T(&element), T(&before.to_string())];
            self.part(&order).check("r", false, &words);
        }
        for (place, standing) in view.told_ranks().iter().enumerate() {
            let (order, [among, score, element]) = (self.keys.order(&standing.order), point_words(standing));
            self.by.push(view.moved_before(standing));
            // One whose number is given by this very commit.
            let gapped = Gapped::element(self.keys, standing);
            let element = gapped.as_ref().map_or(T(&element), G);
            self.part(&order).tell(totals + place, "r", &[K(&order), T(&among), T(&score), element]);
        }
    }

    /// Where a row stands.
    pub(crate) fn change_order(&mut self, key: &Key, change: &Change) {
        let Some(moved) = change.moves(key) else { return };
        let (keys, order) = (self.keys, self.keys.order(&moved.order));
        let part = self.part(&order);
        if let Some(was) = moved.before {
            part.change("x", &[K(&order), T(&element(&was))]);
        }
        if let Some(will) = moved.after {
            let (score, usual) = (order_score(will.score), element(&will));
            let gapped = Gapped::element(keys, &Standing::at(moved.order, will));
            part.change("z", &[K(&order), gapped.as_ref().map_or(T(&usual), G), T(&score)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use tally_core::rows::{CountKey, LimitKey, Object, Side, TotalKey};
    use tally_core::time::{Stamp, Timestamp};
    use tally_core::view::Reading;
    use tally_core::{KeyId, Name, ObjectId};
    use tally_engine::{Mark, Seen};

    use super::*;
    use crate::keys::Keys;

    #[test]
    fn a_counter_with_a_condition_on_its_object_is_one_slot() {
        let keys = Keys::new("tally", true);
        for id in ["post:42", "post:}", "post:{a}b"] {
            let key = CountKey { name: Name::new("views").unwrap(), key: KeyId::new(id).unwrap() };
            let object = Key::Object(ObjectId::new(id).unwrap());
            let row = Object {
                status: None,
                attributes: Default::default(),
                created_at: Timestamp(1),
                updated_at: Timestamp(1),
            };
            let mut view = View::new(Reading::Whole, 1, 1);
            view.fill_row(object, Some(Row::Object(row)));
            view.fill_row(Key::Touched(key.clone()), None);
            let touched = Change { before: None, after: Some(Row::Touched(Timestamp(1))) };
            let limit = LimitKey { name: "counters.views".into(), key: id.into() };
            let state = tally_core::rows::UsedState::Bucket { full_at: 1 };
            let used = Row::Limit(tally_core::rows::Used { state, look_at: Timestamp(1) });
            let changes = Changes {
                rows: vec![
                    (Key::Touched(key.clone()), touched),
                    (Key::Limit(limit), Change { before: None, after: Some(used) }),
                ],
                adds: vec![(TotalKey::Counter(key), 1)],
                stamp: Stamp(1),
                ..Changes::default()
            };
            let plan = Plan::new(&keys, &Seen { mark: Mark::default(), view: &view }, &changes).unwrap();
            let slot = keys.part(&keys.home(Side::Object, id));
            assert_eq!(plan.parts.keys().copied().collect::<Vec<_>>(), [slot], "{id}");
        }
    }
}
