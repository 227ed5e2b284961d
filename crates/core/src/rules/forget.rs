//! What was counted of a subject or an object that goes: days, scores, counters.

use crate::catalog::SheetDef;
use crate::decide::Context;
use crate::id::{KeyId, SubjectId};
use crate::rows::{BoardKey, CountKey, Key, Row, ScoreKey, TotalKey};
use crate::rules::{attendance, board};
use crate::time::Stamp;
use crate::view::{Stop, View};

/// Days that one step takes back.
const DAYS_PER_STEP: usize = 100;

/// Takes back the days and the scores that a subject had before a moment. Says whether there are more. A sketch knows
/// nobody's name, so there is nothing to take out of it.
pub fn counted(subject: &SubjectId, before: Stamp, context: &Context<'_>, view: &mut View) -> Result<bool, Stop> {
    let counting = &context.catalog.counting;
    let mut more = false;
    for sheet in counting.sheets() {
        more |= days(sheet, subject, before, view)?;
    }
    if more {
        return Ok(true);
    }
    for def in counting.boards() {
        let now = board::board_key(def, context.now());
        let mut boards = vec![now.clone()];
        if def.season.is_some()
            && let Some(Row::Board(seasons)) = view.row_uncounted(&Key::Board(def.name.clone()))?
        {
            let others = seasons.into_iter().filter(|season| *season != now.season);
            boards.extend(others.map(|season| BoardKey { season, ..now.clone() }));
        }
        let keys: Vec<ScoreKey> = boards.into_iter().map(|board| ScoreKey { board, member: subject.clone() }).collect();
        view.want(&keys.iter().cloned().map(Key::Score).collect::<Vec<_>>(), &[])?;
        for key in keys {
            if let Some(score) = board::read(&key, view)?.filter(|score| score.reached < before) {
                board::put(def, &key, Some(score), None, view)?;
            }
        }
    }
    Ok(false)
}

fn days(def: &SheetDef, subject: &SubjectId, before: Stamp, view: &mut View) -> Result<bool, Stop> {
    let row = Key::Attendee(def.name.clone(), subject.clone());
    let Some(Row::Attendee(mut attendee)) = view.row_uncounted(&row)? else { return Ok(false) };
    let last = attendance::today(def, before.time());
    let days: Vec<u32> = attendee.days.bitmap().iter().take_while(|day| *day <= last.0).collect();
    let mut missed = false;
    for day in days.iter().take(DAYS_PER_STEP) {
        let day = crate::day::Day(*day);
        match attendance::change(&def.name, day, subject, Some(attendee.clone()), false, view) {
            Ok(left) => attendee.days = left,
            Err(Stop::Miss) => missed = true,
            Err(stop) => return Err(stop),
        }
    }
    if missed {
        return Err(Stop::Miss);
    }
    if attendee.days.is_empty() {
        // Its number is not given to anybody else; but who had it is forgotten.
        view.set_uncounted(row, None)?;
    }
    Ok(days.len() > DAYS_PER_STEP)
}

/// Takes back what was counted of an object.
pub fn counted_of(id: &str, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    let Ok(key) = KeyId::new(id) else { return Ok(()) };
    let counting = &context.catalog.counting;
    let of = |name: &crate::id::Name| CountKey { name: name.clone(), key: key.clone() };
    let totals: Vec<TotalKey> = counting.counters().map(|def| TotalKey::Counter(of(&def.name))).collect();
    let touched = counting.counters().filter(|def| def.last_at).map(|def| Key::Touched(of(&def.name)));
    let rows: Vec<Key> = touched.chain(counting.uniques().map(|def| Key::Unique(of(&def.name)))).collect();
    view.want(&rows, &totals)?;
    for total in &totals {
        let value = view.total(total)?;
        if value != 0 {
            // From the other end of the numbers, since the lowest has no opposite.
            view.add(total, value.checked_neg().unwrap_or(i64::MAX))?;
        }
    }
    for row in rows {
        if view.row_uncounted(&row)?.is_some() {
            view.set_uncounted(row, None)?;
        }
    }
    Ok(())
}
