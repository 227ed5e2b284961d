//! What was counted of a subject or an object that goes: days, scores, counters.

use crate::catalog::{BoardDef, SheetDef};
use crate::day::Day;
use crate::decide::Context;
use crate::id::{KeyId, Name, SubjectId};
use crate::rows::{BoardKey, CountKey, Key, Row, ScoreKey, TotalKey};
use crate::rules::{attendance, board};
use crate::view::{Stop, View};

/// Days, and scores, that one step takes back.
const DAYS_PER_STEP: usize = 100;
const SCORES_PER_STEP: usize = 100;

/// Takes back the days and the scores of a subject, in all that is declared. Says whether there are more. A sketch knows
/// nobody's name, so there is nothing to take out of it.
pub fn counted(subject: &SubjectId, context: &Context<'_>, view: &mut View) -> Result<bool, Stop> {
    let counting = &context.catalog.counting;
    let (mut more, mut missed) = (false, false);
    let mut note = |outcome: Result<bool, Stop>| match outcome {
        Ok(left) => {
            more |= left;
            Ok(())
        }
        // Go on, so that one load brings what all of them miss.
        Err(Stop::Miss) => {
            missed = true;
            Ok(())
        }
        Err(stop) => Err(stop),
    };
    for sheet in counting.sheets() {
        note(days(sheet, subject, view))?;
    }
    for def in counting.boards() {
        note(scores(def, subject, context, view))?;
    }
    if missed { Err(Stop::Miss) } else { Ok(more) }
}

fn scores(def: &BoardDef, subject: &SubjectId, context: &Context<'_>, view: &mut View) -> Result<bool, Stop> {
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
    let mut taken = 0;
    for key in keys {
        if let Some(score) = board::read(&key, view)? {
            if taken == SCORES_PER_STEP {
                return Ok(true);
            }
            board::put(def, &key, Some(score), None, view)?;
            taken += 1;
        }
    }
    Ok(false)
}

fn days(def: &SheetDef, subject: &SubjectId, view: &mut View) -> Result<bool, Stop> {
    let row = Key::Attendee(def.name.clone(), subject.clone());
    let Some(Row::Attendee(mut attendee)) = view.row_uncounted(&row)? else { return Ok(false) };
    let days: Vec<u32> = attendee.days.bitmap().iter().take(DAYS_PER_STEP + 1).collect();
    let mut missed = false;
    for day in days.iter().take(DAYS_PER_STEP) {
        match attendance::change(&def.name, Day(*day), subject, Some(attendee.clone()), false, view) {
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
    let of = |name: &Name| CountKey { name: name.clone(), key: key.clone() };
    let totals: Vec<TotalKey> = counting.counters().map(|def| TotalKey::Counter(of(&def.name))).collect();
    let touched = counting.counters().filter(|def| def.last_at).map(|def| Key::Touched(of(&def.name)));
    let rows: Vec<Key> = touched.chain(counting.uniques().map(|def| Key::Unique(of(&def.name)))).collect();
    view.want(&rows, &totals)?;
    for total in &totals {
        // Looked at, and held against the commit: nobody else may take the same away.
        let value = view.total_decided(total)?;
        match value.checked_neg() {
            Some(0) => {}
            Some(back) => _ = view.add(total, back)?,
            // The lowest number has no opposite.
            None => {
                view.add(total, i64::MAX)?;
                view.add(total, 1)?;
            }
        }
    }
    for row in rows {
        if view.row_uncounted(&row)?.is_some() {
            view.set_uncounted(row, None)?;
        }
    }
    Ok(())
}
