//! What every store's audit has in common: the rows are given to a ledger as often as it asks for them, and what does not agree is
//! told.

use tally_core::rows::Key;
use tally_core::verify::{Fact, Judged, Ledger, Wrong};
use tally_core::view::{Reading, Stop, View, Wants};

use crate::{Engine, Finding, Loaded, StoreError};

/// Goes over rows that stay as they are, as often as it takes.
pub fn at_one_moment(mut read: impl FnMut(&mut Ledger) -> Result<(), StoreError>) -> Result<Vec<Wrong>, StoreError> {
    let mut ledger = Ledger::default();
    loop {
        read(&mut ledger)?;
        if !ledger.again() {
            return Ok(ledger.into_wrong());
        }
    }
}

/// Tells what is wrong.
pub fn tell(wrong: Vec<Wrong>, tell: &mut (dyn FnMut(Finding) + Send)) {
    for wrong in wrong {
        let Judged { said: stored, counted } = wrong.judged;
        tell(if let Fact::Total(total) = wrong.fact {
            Finding::Drift { total, stored, counted }
        } else {
            Finding::Wrong(wrong)
        });
    }
}

/// How often a fact is looked at whose rows are in several places.
const LOOKS: usize = 32;

/// Looks at a fact as of one moment: for a store whose rows move while they are read. Nothing where they were never read so.
pub async fn look<E: Engine>(engine: &E, fact: &Fact, who: Option<&Key>) -> Result<Option<Judged>, StoreError> {
    let mut wants = Wants::default();
    for _ in 0..LOOKS {
        // Everything anew each time, so that all of it is of the last.
        let loaded = if wants.is_empty() { Loaded::default() } else { engine.load(&wants).await? };
        let mut view = View::new(Reading::Whole, 1, 0);
        wants.rows.iter().cloned().zip(loaded.rows).for_each(|(key, row)| view.fill_row(key, row));
        wants.totals.iter().cloned().zip(loaded.totals).for_each(|(key, total)| view.fill_total(key, total));
        wants.ranks.iter().cloned().zip(loaded.ranks).for_each(|(place, before)| view.fill_rank(place, before));
        match fact.look(who, &mut view) {
            Ok(judged) if loaded.of_one_moment && !view.misses() => return Ok(Some(judged)),
            Err(Stop::Refused(refusal)) => return Err(StoreError::Broken(refusal.to_string())),
            Ok(_) | Err(Stop::Miss) => {
                let missing = view.take_missing();
                wants.rows.extend(missing.rows);
                wants.totals.extend(missing.totals);
                wants.ranks.extend(missing.ranks);
            }
        }
    }
    Ok(None)
}
