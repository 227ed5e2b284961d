//! Whether each day counts those who were there. An audit looks at edges alone; a copy has read every row anyway.

use std::collections::BTreeMap;

use tally_core::rows::{Key, Row, TotalKey};
use tally_core::view::Wants;
use tally_core::{Day, Name};
use tally_engine::{Engine, StoreError};

/// Totals that are asked for at once.
const TOTALS_AT_ONCE: usize = 1_000;

/// How many were there on each day, as the rows of a store say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Present(BTreeMap<(Name, Day), Told>);

/// The two places that say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Told {
    /// Bits of the day.
    bits: u64,
    /// Subjects that have the day.
    subjects: u64,
}

impl Present {
    /// Takes down what a row says.
    pub(super) fn add(&mut self, key: &Key, row: &Row) {
        if let (Key::Chunk(chunk), Row::Chunk(bits)) = (key, row) {
            self.0.entry((chunk.sheet.clone(), chunk.day)).or_default().bits += bits.bitmap().len();
        }
        if let (Key::Attendee((sheet, _)), Row::Attendee(attendee)) = (key, row) {
            for day in attendee.counted().bitmap() {
                self.0.entry((sheet.clone(), Day(day))).or_default().subjects += 1;
            }
        }
    }

    /// How many days have a total that is not what both places say.
    pub(super) async fn drifted<E: Engine>(&self, engine: &E) -> Result<u64, StoreError> {
        let days: Vec<(&(Name, Day), &Told)> = self.0.iter().collect();
        let mut drifted = 0;
        for days in days.chunks(TOTALS_AT_ONCE) {
            let total = |(sheet, day): &(Name, Day)| TotalKey::Present { sheet: sheet.clone(), day: *day };
            let totals = days.iter().map(|(day, _)| total(day)).collect();
            let stored = engine.load(&Wants { totals, ..Wants::default() }).await?.totals;
            let is_off = |((_, told), stored): &(&(&(Name, Day), &Told), i64)| {
                told.bits != told.subjects || i64::try_from(told.bits) != Ok(*stored)
            };
            drifted += days.iter().zip(stored).filter(is_off).count() as u64;
        }
        Ok(drifted)
    }
}
