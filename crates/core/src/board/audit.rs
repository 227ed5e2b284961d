//! What rows of boards say about each other: the level of a score says how many members have it.

use super::rule::{level_key, members_at};
use crate::id::Name;
use crate::rows::{Board, BoardKey, Key, OrderKey, Row, Score, ScoreKey};
use crate::time::Stamp;
use crate::verify::{Claims, Judged, Known, Said};
use crate::view::{Stop, View};

/// What is said twice.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fact {
    /// A level has as many members as there are scores of it.
    Level(ScoreKey),
    /// A board that has scores says how it is ranked.
    Ranked(Name),
}

/// What a board tells of its scores.
pub(super) fn board(name: &Name, board: &Board, known: &mut Known) {
    known.board(name, board.dense);
}

/// What a score says, or the level of one.
pub(super) fn score(key: &ScoreKey, score: &Score, known: &Known, claims: &mut Claims<'_>) {
    match known.dense(&key.board.board) {
        None => claims.counted(Fact::Ranked(key.board.board.clone()).into(), 1),
        Some(_) if key.board.levels => {
            claims.said(Fact::Level(key.clone()).into(), members_in(key, *score));
        }
        Some(true) => {
            if let Ok(level) = level_key(&key.board, score.score) {
                claims.counted(Fact::Level(level).into(), 1);
            }
        }
        Some(false) => {}
    }
}

/// How many members a level says that it has. One that cannot be is off whatever there is.
fn members_in(key: &ScoreKey, level: Score) -> i64 {
    let is_right = level.reached.0 > 0 && key.member.as_str() == level.score.to_string();
    if is_right { i64::try_from(level.reached.0).unwrap_or(-1) } else { -1 }
}

fn known(board: &Name, view: &mut View) -> Result<Option<Board>, Stop> {
    Ok(match view.row_uncounted(&Key::Board(board.clone()))? {
        Some(Row::Board(board)) => Some(board),
        _ => None,
    })
}

impl Said for Fact {
    fn order(&self) -> Option<OrderKey> {
        match self {
            Self::Level(key) => Some(BoardKey { levels: false, ..key.board.clone() }.into()),
            Self::Ranked(_) => None,
        }
    }

    /// How many scores a board has is not asked: one is enough to find that it does not say how it is ranked.
    fn look(&self, _who: Option<&Key>, view: &mut View) -> Result<Judged, Stop> {
        match self {
            Self::Level(key) => {
                let level = Key::Score(key.clone());
                view.want(&[Key::Board(key.board.board.clone()), level.clone()], &[])?;
                let said = view.kept(&level, Row::into_score)?.map_or(0, |score| members_in(key, score));
                let dense = known(&key.board.board, view)?.is_some_and(|board| board.dense);
                let counted = match key.member.as_str().parse() {
                    Ok(score) if dense => members_at(&key.board, score, view)?,
                    _ => 0,
                };
                Ok(Judged { said, counted })
            }
            Self::Ranked(board) => {
                let is_known = known(board, view)?.is_some();
                Ok(Judged { said: 0, counted: i64::from(!is_known) })
            }
        }
    }

    /// Makes a level what its board says.
    fn put_right(&self, who: Option<&Key>, view: &mut View) -> Result<bool, Stop> {
        let Self::Level(key) = self else { return Ok(false) };
        let Judged { said, counted } = self.look(who, view)?;
        if said == counted {
            return Ok(false);
        }
        let score = key.member.as_str().parse().ok().filter(|_| counted > 0);
        let level = score.map(|score| Row::Score(Score { score, reached: Stamp(counted.unsigned_abs()) }));
        view.set_uncounted(Key::Score(key.clone()), level)?;
        Ok(true)
    }

    fn words(&self, judged: Judged, _who: Option<&Key>) -> String {
        match self {
            Self::Level(ScoreKey { board, member }) => format!(
                "board {} of the season {}: {} members have the score {member}, and its level says {}",
                board.board, board.season, judged.counted, judged.said
            ),
            Self::Ranked(board) => format!(
                "board {board}: it has scores, and nothing says how it is ranked; \
                 this is not mended: restore a backup, or let members score on it, which writes it down anew"
            ),
        }
    }
}
