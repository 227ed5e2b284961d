//! What an object's counters are worth when it goes: nothing.

use super::Command;
use crate::id::{KeyId, Name};
use crate::rows::{CountKey, Key, TotalKey};
use crate::subject::{Counted, Going, take_row};
use crate::view::{Stop, View};

impl Counted for Command {
    fn forget_object(going: &Going<'_, KeyId>, view: &mut View) -> Result<bool, Stop> {
        let names = going.names;
        let of = |name: &Name| CountKey { name: name.clone(), key: going.who.clone() };
        let totals: Vec<TotalKey> = names.counters.iter().map(|name| TotalKey::Counter(of(name))).collect();
        let keeps_time = |name: &&Name| going.context.catalog.counter(name).map_or(true, |def| def.last_at);
        let rows: Vec<Key> = names.counters.iter().filter(keeps_time).map(|name| Key::Touched(of(name))).collect();
        view.want(&rows, &totals)?;
        let mut any = false;
        for total in &totals {
            any |= take_back(total, view)?;
        }
        for row in rows {
            any |= take_row(row, view)?;
        }
        Ok(any)
    }
}

/// Makes a counter nothing. Says whether it was anything.
fn take_back(total: &TotalKey, view: &mut View) -> Result<bool, Stop> {
    // Looked at, and held against the commit: nobody else may take the same away.
    let value = view.total_decided(total)?;
    match value.checked_neg() {
        Some(0) => return Ok(false),
        Some(back) => _ = view.add(total, back)?,
        // The lowest number has no opposite.
        None => {
            view.add(total, i64::MAX)?;
            view.add(total, 1)?;
        }
    }
    Ok(true)
}
