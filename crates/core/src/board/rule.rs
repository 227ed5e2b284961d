//! Who leads: scores in order, and the ranks that follow from it.

use super::{ChangeScore, RankAnew, ScoreChange, ScoreReply};
use crate::catalog::{BoardDef, Ties};
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::limit;
use crate::limits::SCORE_MAX;
use crate::reply::Done;
use crate::rows::{Among, Board, BoardKey, Key, Row, Score, ScoreKey, Standing};
use crate::time::{Stamp, Timestamp};
use crate::view::{Stop, View};

/// The board in the season of a moment.
pub fn board_key(def: &BoardDef, now: Timestamp) -> BoardKey {
    let season = def.season.as_ref().map_or(Timestamp(0), |schedule| schedule.season(now));
    BoardKey { board: def.name.clone(), season, levels: false }
}

/// Changes a member's score.
pub(crate) fn score(command: &ChangeScore, context: &Context<'_>, view: &mut View) -> Result<ScoreReply, Stop> {
    let ChangeScore { board, member, change } = command;
    let change = *change;
    let def = context.catalog.board(board)?;
    check(def, change)?;
    let key = ScoreKey { board: board_key(def, context.now()), member: member.clone() };
    let mut rows = vec![Key::Score(key.clone()), Key::Board(board.clone())];
    rows.extend(limit::row(def.rate_limit.as_ref(), Some(member), ""));
    view.want(&rows, &[])?;
    let known = known(board, view)?;
    check_ties(def, known.as_ref())?;
    let before = read(&key, view)?;
    let after = match (change, before) {
        (ScoreChange::Leave, _) => None,
        (ScoreChange::By(by), before) => {
            let score = before.map_or(0, |before| before.score).checked_add(by);
            let fits = score.filter(|score| score.unsigned_abs() <= SCORE_MAX.unsigned_abs());
            Some(fits.ok_or_else(|| Refusal::Conflict(format!("a score is between -{SCORE_MAX} and {SCORE_MAX}")))?)
        }
        (ScoreChange::To(score), Some(before)) if def.best_of => Some(score.max(before.score)),
        (ScoreChange::To(score), _) => Some(score),
    };
    let changed = after != before.map(|before| before.score);
    let after = after.map(|score| Score { score, reached: context.stamp });
    let after = if changed { after } else { before };
    if changed {
        limit::pass(def.rate_limit.as_ref(), Some(member), "", context, view)?;
        put(def, &key, before, after, view)?;
        if after.is_some() {
            note(def, &key.board, known, view)?;
        }
    }
    let rank = after.map(|score| rank(def.ties, &key, score, view));
    let season = def.season.as_ref().map(|_| key.board.season);
    let score = after.map(|after| after.score);
    Ok(ScoreReply { board: board.clone(), member: member.clone(), score, rank, changed, season })
}

fn check(def: &BoardDef, change: ScoreChange) -> Result<(), Refusal> {
    match change {
        ScoreChange::By(_) if def.best_of => {
            Err(Refusal::bad_request(format!("`{}` keeps the best score; set it, do not add to it", def.name)))
        }
        ScoreChange::To(score) | ScoreChange::By(score) if score.unsigned_abs() > SCORE_MAX.unsigned_abs() => {
            Err(Refusal::bad_request(format!("a score is between -{SCORE_MAX} and {SCORE_MAX}")))
        }
        _ => Ok(()),
    }
}

/// What is known of a board.
fn known(board: &Name, view: &mut View) -> Result<Option<Board>, Stop> {
    view.kept(&Key::Board(board.clone()), Row::into_board)
}

/// Says how a board is ranked from now on. Whoever asks has seen that it has no members.
pub(crate) fn rank_anew(command: &RankAnew, view: &mut View) -> Result<Done, Stop> {
    let RankAnew { board, dense } = command;
    let dense = *dense;
    let known = known(board, view)?;
    let changed = known.as_ref().is_some_and(|known| known.dense != dense);
    if let Some(known) = known.filter(|_| changed) {
        view.set_uncounted(Key::Board(board.clone()), Some(Row::Board(Board { dense, ..known })))?;
    }
    Ok(Done { changed })
}

/// Whether a board is ranked as it was filled: another server may have been told otherwise, and ranks would be wrong.
pub fn check_ties(def: &BoardDef, known: Option<&Board>) -> Result<(), Refusal> {
    let is_dense = def.ties == Ties::Dense;
    if known.is_some_and(|known| known.dense != is_dense) {
        let (name, not) = (&def.name, if is_dense { "not " } else { "" });
        return Err(Refusal::Conflict(format!(
            "the `ties` of the board `{name}` were {not}`dense` when it got its members: its ranks would be wrong"
        )));
    }
    Ok(())
}

/// Reads a score.
pub(crate) fn read(key: &ScoreKey, view: &mut View) -> Result<Option<Score>, Stop> {
    view.kept_counted(&Key::Score(key.clone()), Row::into_score)
}

/// Writes a score, or takes it away, with what `dense` ranks stand on.
pub(super) fn put(
    def: &BoardDef,
    key: &ScoreKey,
    before: Option<Score>,
    after: Option<Score>,
    view: &mut View,
) -> Result<(), Stop> {
    if def.ties == Ties::Dense {
        for (score, by) in [(before, -1), (after, 1)] {
            if let Some(score) = score {
                move_level(level_key(&key.board, score.score)?, score.score, by, view)?;
            }
        }
    }
    view.set(Key::Score(key.clone()), after.map(Row::Score))
}

/// Takes a score away from a board that need not be declared any more, so that nobody knows how its ties were ranked:
/// by whether its levels are there.
pub(crate) fn take(key: &ScoreKey, score: Score, view: &mut View) -> Result<(), Stop> {
    let level = level_key(&key.board, score.score)?;
    if view.row_uncounted(&Key::Score(level.clone()))?.is_some() {
        move_level(level, score.score, -1, view)?;
    }
    view.set(Key::Score(key.clone()), None)
}

/// The different scores of a board are a board of their own, in which each stands once.
pub(super) fn level_key(board: &BoardKey, score: i64) -> Result<ScoreKey, Refusal> {
    Ok(ScoreKey { board: BoardKey { levels: true, ..board.clone() }, member: SubjectId::new(&score.to_string())? })
}

/// How many members of a board have a score, which the decision stands on.
pub(super) fn members_at(board: &BoardKey, score: i64, view: &mut View) -> Result<i64, Stop> {
    let at = |among| Standing { order: BoardKey { levels: false, ..board.clone() }.into(), score, among };
    // What is written down cannot be corrected by what the commit tells.
    let exact = view.set_exact(true);
    let (first, last) = (view.before(&at(Among::First)), view.before(&at(Among::Last)));
    view.set_exact(exact);
    if view.misses() { Err(Stop::Miss) } else { Ok(last.saturating_sub(first).cast_signed()) }
}

/// One member more or less has this score.
fn move_level(level: ScoreKey, score: i64, by: i64, view: &mut View) -> Result<(), Stop> {
    let board = level.board.board.clone();
    let row = Key::Score(level);
    if !view.has(&row) {
        return Ok(());
    }
    let members = view.kept(&row, Row::into_score)?.map_or(0, |level| level.reached.0);
    let members = members.checked_add_signed(by).ok_or_else(|| {
        Refusal::Conflict(format!("scores of `{board}` were counted with other ties; dense ranks need a new board"))
    })?;
    view.set_uncounted(row, (members > 0).then_some(Row::Score(Score { score, reached: Stamp(members) })))
}

/// From its first score on a board says how it is ranked, and from the first of each season on it lists that. All of them:
/// forgetting looks where the list says.
fn note(def: &BoardDef, board: &BoardKey, known: Option<Board>, view: &mut View) -> Result<(), Stop> {
    let is_new = known.is_none();
    let mut known = known.unwrap_or(Board { seasons: Vec::new(), dense: def.ties == Ties::Dense });
    let season = if board.season == Timestamp(0) { Ok(0) } else { known.seasons.binary_search(&board.season) };
    if let Err(place) = season {
        known.seasons.insert(place, board.season);
    }
    if is_new || season.is_err() {
        view.set_uncounted(Key::Board(board.board.clone()), Some(Row::Board(known)))?;
    }
    Ok(())
}

/// The place whose number of members before it gives a rank; and what to add to that number.
pub fn rank_standing(ties: Ties, key: &ScoreKey, score: Score) -> (Standing, u64) {
    let first = |board| Standing { order: BoardKey::into(board), score: score.score, among: Among::First };
    match ties {
        Ties::FirstToReach => (key.standing(score), 1),
        Ties::Shared => (first(key.board.clone()), 1),
        Ties::Dense => (first(BoardKey { levels: true, ..key.board.clone() }), 1),
    }
}

fn rank(ties: Ties, key: &ScoreKey, score: Score, view: &mut View) -> u64 {
    let (standing, more) = rank_standing(ties, key, score);
    view.before(&standing).wrapping_add(more)
}
