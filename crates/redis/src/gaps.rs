//! Texts in which numbers are missing: those that the commit takes of a sequence, and that the script knows.

use serde::Serialize;
use tally_core::rows::{Cell, Home, Key, Row, Standing};
use tally_engine::StoreError;

use crate::keys::Keys;
use crate::places::{Place, due_member};

/// A text, and where in it which of the numbers belong.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Gapped {
    pub(crate) text: String,
    pub(crate) gaps: Vec<Gap>,
    /// Where the last number that was given is kept: a hash and its field.
    pub(crate) sequence: (String, String),
}

/// Where in a text a number belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gap {
    /// So much of the text comes before it.
    pub(crate) at: usize,
    /// Which of those that are taken.
    pub(crate) place: u32,
    /// How it is written, as `scripts/fill.lua` knows it.
    pub(crate) form: &'static str,
}

/// As usual.
const DECIMAL: &str = "d";
/// As in an order: sixteen digits, so that texts are in the order of numbers.
const DIGITS: &str = "x";

impl Gapped {
    /// A row's element in an order, as `orders::element` has it; none where its number is not missing.
    pub(crate) fn element(keys: &Keys, standing: &Standing) -> Option<Self> {
        let (sequence, place) = standing.taken()?;
        let Place::Field(hash, field) = keys.place(&sequence.key()) else { return None };
        let gaps = [DIGITS, DECIMAL].map(|form| Gap { at: 0, place, form }).to_vec();
        Some(Self { text: String::new(), gaps, sequence: (hash, field) })
    }

    /// The field of a row.
    pub(crate) fn field(keys: &Keys, key: &Key, field: String) -> Result<Self, StoreError> {
        let declared = key.kind().declared();
        let last = (0..declared.key.len()).rev().find(|part| declared.home != Home::With(*part));
        let mut gapped = Self { text: field, ..Self::of(keys, key)? };
        for (part, cell) in key.to_cells().iter().enumerate() {
            match cell {
                Cell::Taken(place) if Some(part) == last => {
                    gapped.gaps.push(Gap { at: 0, place: *place, form: DECIMAL })
                }
                Cell::Taken(_) => return Err(StoreError::Broken(format!("a key of Redis cannot wait for {key:?}"))),
                _ => {}
            }
        }
        Ok(gapped)
    }

    /// How a row stands among those that are due, as `places::due_member` has it.
    pub(crate) fn due_member(keys: &Keys, key: &Key) -> Result<Self, StoreError> {
        if !key.is_taken() {
            return Ok(Self { text: due_member(key), ..Self::default() });
        }
        let mut gapped = Self::of(keys, key)?;
        for (part, cell) in key.to_cells().iter().enumerate() {
            if part > 0 {
                gapped.text.push('\0');
            }
            gapped.text.push_str(&cell.to_string());
            gapped.gap(cell);
        }
        Ok(gapped)
    }

    /// A row, as `rows::row_text` has it.
    pub(crate) fn row(keys: &Keys, key: &Key, row: &Row) -> Result<Self, StoreError> {
        let (columns, cells) = (row.kind().declared().columns, row.to_cells());
        let mut gapped = Self::of(keys, key)?;
        if let [cell] = cells.as_slice() {
            gapped.put_json(cell)?;
            return Ok(gapped);
        }
        let pairs = columns.iter().zip(&cells).filter(|(_, cell)| **cell != Cell::Null);
        for (number, ((name, _), cell)) in pairs.enumerate() {
            gapped.text.push_str(if number == 0 { "{" } else { "," });
            gapped.text.push_str(&json(name)?);
            gapped.text.push(':');
            gapped.put_json(cell)?;
        }
        gapped.text.push('}');
        Ok(gapped)
    }

    fn of(keys: &Keys, key: &Key) -> Result<Self, StoreError> {
        let sequence = key.sequence().map(|sequence| keys.place(&sequence.key()));
        match sequence {
            Some(Place::Field(hash, field)) => Ok(Self { sequence: (hash, field), ..Self::default() }),
            Some(Place::Key(_)) | None => Err(StoreError::Broken(format!("{key:?} has no sequence"))),
        }
    }

    /// Here belongs a number, if it is missing.
    fn gap(&mut self, cell: &Cell<'_>) -> bool {
        if let Cell::Taken(place) = cell {
            self.gaps.push(Gap { at: self.text.len(), place: *place, form: DECIMAL });
        }
        matches!(cell, Cell::Taken(_))
    }

    fn put_json(&mut self, cell: &Cell<'_>) -> Result<(), StoreError> {
        if !self.gap(cell) {
            self.text.push_str(&json(cell)?);
        }
        Ok(())
    }
}

fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Broken(error.to_string()))
}

#[cfg(test)]
mod tests {
    use tally_core::rows::{EntryKey, Seq, Ticket, TicketKey, TicketState};
    use tally_core::time::Timestamp;
    use tally_core::{Name, SubjectId};

    use super::*;
    use crate::rows::row_text;

    #[test]
    fn a_text_without_gaps_is_the_usual_one() {
        let keys = Keys::new("tally", true);
        let gap = |at, place| Gap { at, place, form: DECIMAL };
        let (room, subject) = (Name::new("sale").unwrap(), SubjectId::new("a\"nn").unwrap());
        let ticket =
            Row::Ticket(Ticket::new(subject.clone(), "안녕", TicketState::Waiting, Timestamp(1), Timestamp(2)));
        let key = Key::Ticket(TicketKey { room: room.clone(), seq: Seq::Given(7) });
        let usual = Gapped::row(&keys, &key, &ticket).unwrap();
        assert_eq!((usual.text, usual.gaps), (row_text(&ticket).unwrap(), vec![]));
        assert_eq!(Gapped::due_member(&keys, &key).unwrap().text, due_member(&key));

        let key = Key::Ticket(TicketKey { room: room.clone(), seq: Seq::Taken(3) });
        let Place::Field(hash, field) = keys.place(&key) else { panic!("a ticket is a field") };
        let field = Gapped::field(&keys, &key, field).unwrap();
        assert_eq!((hash.as_str(), field.text.as_str(), field.gaps), ("tally:ticket:{sale}", "", vec![gap(0, 3)]));
        assert_eq!(field.sequence, ("tally:sequence:{sale}".to_owned(), "queue".to_owned()));
        assert_eq!(Gapped::due_member(&keys, &key).unwrap().gaps, [gap(5, 3)]);
        let (order, place) = Row::stands(&ticket, &key).unwrap();
        let element = Gapped::element(&keys, &Standing::at(order, place)).unwrap();
        assert_eq!(element.gaps, [Gap { form: DIGITS, ..gap(0, 3) }, gap(0, 3)]);
        assert_eq!(element.sequence, ("tally:sequence:{sale}".to_owned(), "queue".to_owned()));

        let key = Key::Entry(EntryKey { room, subject, token: "t".into() });
        let row = Gapped::row(&keys, &key, &Row::Entry(Seq::Taken(9))).unwrap();
        assert_eq!((row.text.as_str(), row.gaps), ("", vec![gap(0, 9)]));
    }
}
