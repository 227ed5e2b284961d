//! What was counted of a subject or an object that goes: days, scores, counters.
//!
//! The request itself takes what can still be added to, so that whatever comes afterwards begins anew; the job takes the
//! rest, step by step.

use crate::decide::Context;
use crate::id::{KeyId, Name, SubjectId};
use crate::rows::{BoardKey, CountKey, Key, Row, ScoreKey, TotalKey};
use crate::time::{Stamp, Timestamp};
use crate::view::{Stop, View};
use crate::{attendance, board, names};

/// Scores that one step takes back.
const SCORES_PER_STEP: usize = 100;

/// Runs all of them, even if one misses rows: so that one load brings what all of them miss.
pub(crate) fn each(outcomes: impl Iterator<Item = Result<bool, Stop>>) -> Result<bool, Stop> {
    let (mut any, mut missed) = (false, false);
    for outcome in outcomes {
        match outcome {
            Ok(one) => any |= one,
            Err(Stop::Miss) => missed = true,
            Err(stop) => return Err(stop),
        }
    }
    if missed { Err(Stop::Miss) } else { Ok(any) }
}

/// Takes what a subject could still add to: scores of the seasons that are on, and its days, which only count for
/// their days from now on, until the job takes them back.
pub(crate) fn at_once(subject: &SubjectId, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    let names = names::all(context, view)?;
    each(names.sheets.iter().map(|sheet| attendance::forget(sheet, subject, view)))?;
    each(names.boards.iter().map(|name| {
        let board = current(name, context);
        take_score(ScoreKey { board, member: subject.clone() }, Stamp(u64::MAX), context, view)
    }))?;
    Ok(())
}

/// Takes back the days and the scores of a subject, in all that is or was declared. Says whether there are more. A sketch
/// knows nobody's name, so there is nothing to take out of it.
pub(crate) fn counted(
    subject: &SubjectId,
    before: Stamp,
    context: &Context<'_>,
    view: &mut View,
) -> Result<bool, Stop> {
    let names = names::all(context, view)?;
    let days = each(names.sheets.iter().map(|sheet| attendance::forget_step(sheet, subject, view)));
    let scores = each(names.boards.iter().map(|name| scores(name, subject, before, context, view)));
    each([days, scores].into_iter())
}

/// The board as it is written to now; of one that is not declared, as it is without seasons.
fn current(name: &Name, context: &Context<'_>) -> BoardKey {
    match context.catalog.board(name) {
        Ok(def) => board::board_key(def, context.now()),
        Err(_) => BoardKey { board: name.clone(), season: Timestamp(0), levels: false },
    }
}

fn scores(
    name: &Name,
    subject: &SubjectId,
    before: Stamp,
    context: &Context<'_>,
    view: &mut View,
) -> Result<bool, Stop> {
    let current = current(name, context);
    let mut seasons = vec![Timestamp(0), current.season];
    if let Some(Row::Board(listed)) = view.row_uncounted(&Key::Board(name.clone()))? {
        seasons.extend(listed.seasons);
    }
    seasons.sort();
    seasons.dedup();
    let boards = seasons.into_iter().map(|season| BoardKey { season, ..current.clone() });
    let keys: Vec<ScoreKey> = boards.map(|board| ScoreKey { board, member: subject.clone() }).collect();
    view.want(&keys.iter().cloned().map(Key::Score).collect::<Vec<_>>(), &[])?;
    let mut taken = 0;
    for key in keys {
        if taken == SCORES_PER_STEP {
            return Ok(true);
        }
        taken += usize::from(take_score(key, before, context, view)?);
    }
    Ok(false)
}

/// Takes a score away, if it was reached before a time. Says whether it did.
fn take_score(key: ScoreKey, before: Stamp, context: &Context<'_>, view: &mut View) -> Result<bool, Stop> {
    match board::read(&key, view)? {
        Some(score) if score.reached.was_before(before, context.stamp) => board::take(&key, score, view).map(|()| true),
        _ => Ok(false),
    }
}

/// Takes back what was counted of an object, in all that is or was declared.
pub(crate) fn counted_of(id: &str, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    let Ok(key) = KeyId::new(id) else { return Ok(()) };
    let names = names::all(context, view)?;
    let of = |name: &Name| CountKey { name: name.clone(), key: key.clone() };
    let totals: Vec<TotalKey> = names.counters.iter().map(|name| TotalKey::Counter(of(name))).collect();
    let keeps_time = |name: &&Name| context.catalog.counter(name).map_or(true, |def| def.last_at);
    let touched = names.counters.iter().filter(keeps_time).map(|name| Key::Touched(of(name)));
    let rows: Vec<Key> = touched.chain(names.uniques.iter().map(|name| Key::Unique(of(name)))).collect();
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
