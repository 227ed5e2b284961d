//! The scores of a subject that goes: those of the seasons that are on at once, the others by the job.

use super::Command;
use super::rule::{board_key, read, take};
use crate::decide::Context;
use crate::id::{Name, SubjectId};
use crate::rows::{BoardKey, Key, Row, ScoreKey};
use crate::subject::{Counted, Going, each};
use crate::time::Timestamp;
use crate::view::{Stop, View};

/// Scores that one step takes back.
const SCORES_PER_STEP: usize = 100;

impl Counted for Command {
    fn forget_at_once(going: &Going<'_, SubjectId>, view: &mut View) -> Result<bool, Stop> {
        each(going.names.boards.iter().map(|name| take_score(current(name, going.context), going, view)))
    }

    fn forget_step(going: &Going<'_, SubjectId>, view: &mut View) -> Result<bool, Stop> {
        each(going.names.boards.iter().map(|name| scores(name, going, view)))
    }
}

/// The board as it is written to now; of one that is not declared, as it is without seasons.
fn current(name: &Name, context: &Context<'_>) -> BoardKey {
    match context.catalog.board(name) {
        Ok(def) => board_key(def, context.now()),
        Err(_) => BoardKey { board: name.clone(), season: Timestamp(0), levels: false },
    }
}

fn scores(name: &Name, going: &Going<'_, SubjectId>, view: &mut View) -> Result<bool, Stop> {
    let current = current(name, going.context);
    let mut seasons = vec![Timestamp(0), current.season];
    if let Some(Row::Board(listed)) = view.row_uncounted(&Key::Board(name.clone()))? {
        seasons.extend(listed.seasons);
    }
    seasons.sort();
    seasons.dedup();
    let boards: Vec<BoardKey> = seasons.into_iter().map(|season| BoardKey { season, ..current.clone() }).collect();
    view.want(&boards.iter().cloned().map(|board| Key::Score(score_key(board, going))).collect::<Vec<_>>(), &[])?;
    let mut taken = 0;
    for board in boards {
        if taken == SCORES_PER_STEP {
            return Ok(true);
        }
        taken += usize::from(take_score(board, going, view)?);
    }
    Ok(false)
}

fn score_key(board: BoardKey, going: &Going<'_, SubjectId>) -> ScoreKey {
    ScoreKey { board, member: going.who.clone() }
}

/// Takes a score away, if it is old enough. Says whether it did.
fn take_score(board: BoardKey, going: &Going<'_, SubjectId>, view: &mut View) -> Result<bool, Stop> {
    let key = score_key(board, going);
    match read(&key, view)? {
        Some(score) if score.reached.was_before(going.before, going.context.stamp) => {
            take(&key, score, view).map(|()| true)
        }
        _ => Ok(false),
    }
}
