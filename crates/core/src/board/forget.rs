//! The scores of a subject that goes: those of the seasons that are on at once, the others by the job.

use super::Command;
use super::rule::{board_key, read, take};
use crate::decide::Context;
use crate::id::{Name, SubjectId};
use crate::rows::{BoardKey, Key, Names, Row, ScoreKey};
use crate::subject::{Counted, each};
use crate::time::{Stamp, Timestamp};
use crate::view::{Stop, View};

/// Scores that one step takes back.
const SCORES_PER_STEP: usize = 100;

impl Counted for Command {
    fn forget_at_once(
        subject: &SubjectId,
        names: &Names,
        context: &Context<'_>,
        view: &mut View,
    ) -> Result<bool, Stop> {
        each(names.boards.iter().map(|name| {
            let board = current(name, context);
            take_score(ScoreKey { board, member: subject.clone() }, Stamp(u64::MAX), context, view)
        }))
    }

    fn forget_step(
        subject: &SubjectId,
        before: Stamp,
        names: &Names,
        context: &Context<'_>,
        view: &mut View,
    ) -> Result<bool, Stop> {
        each(names.boards.iter().map(|name| scores(name, subject, before, context, view)))
    }
}

/// The board as it is written to now; of one that is not declared, as it is without seasons.
fn current(name: &Name, context: &Context<'_>) -> BoardKey {
    match context.catalog.board(name) {
        Ok(def) => board_key(def, context.now()),
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
    match read(&key, view)? {
        Some(score) if score.reached.was_before(before, context.stamp) => take(&key, score, view).map(|()| true),
        _ => Ok(false),
    }
}
