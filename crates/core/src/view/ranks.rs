//! Ranks: as they were loaded, moved by what the batch has changed since. They are shown and never decided on, so nobody
//! holds them against the commit.

use super::looks::Look;
use super::{Map, View};
use crate::id::SubjectId;
use crate::rows::{BoardKey, Row, Score, ScoreKey, Standing};

#[derive(Default)]
pub(super) struct Ranks {
    /// How many stood before and which load said so; none where that was asked for and is not loaded.
    loaded: Map<Standing, Option<(u64, usize)>>,
    boards: Map<BoardKey, Moves>,
}

/// The members of a board that the batch has moved.
#[derive(Default)]
struct Moves {
    places: Map<SubjectId, usize>,
    moves: Vec<Move>,
}

struct Move {
    member: SubjectId,
    before: Option<Score>,
    now: Option<Score>,
}

impl Ranks {
    /// Takes note of a score as it is now, and as it was loaded.
    pub(super) fn moved(&mut self, key: &ScoreKey, before: Option<&Row>, now: Option<&Row>) {
        let (before, now) = (as_score(before), as_score(now));
        if !self.boards.contains_key(&key.board) {
            self.boards.insert(key.board.clone(), Moves::default());
        }
        let Some(Moves { places, moves }) = self.boards.get_mut(&key.board) else { return };
        match places.get(&key.member) {
            Some(place) => moves[*place].now = now,
            None => {
                places.insert(key.member.clone(), moves.len());
                moves.push(Move { member: key.member.clone(), before, now });
            }
        }
    }

    /// All that were loaded.
    pub(super) fn known(&self) -> impl Iterator<Item = &Standing> {
        self.loaded.iter().filter(|(_, count)| count.is_some()).map(|(standing, _)| standing)
    }
}

fn as_score(row: Option<&Row>) -> Option<Score> {
    if let Some(Row::Score(score)) = row { Some(*score) } else { None }
}

impl View {
    /// Fills in how many stand before a place.
    pub fn fill_rank(&mut self, standing: Standing, before: u64) {
        let load = self.load();
        self.ranks.loaded.insert(standing, Some((before, load)));
    }

    /// How many members stand before a place. One that is not loaded is missed, but does not stop the rule: what comes
    /// behind it in the batch would then be decided on the score as it was, and ask for its own rank only in the next round.
    pub fn before(&mut self, standing: &Standing) -> u64 {
        let Some(Some((loaded, _))) = self.ranks.loaded.get(standing).copied() else {
            self.miss_rank(standing);
            return 0;
        };
        self.look(Look::Rank(standing.clone()));
        let Some(Moves { moves, .. }) = self.ranks.boards.get(&standing.board) else { return loaded };
        let (mut more, mut fewer) = (0, 0);
        for Move { member, before, now } in moves {
            more += u64::from(now.is_some_and(|score| standing.is_behind(member, score)));
            fewer += u64::from(before.is_some_and(|score| standing.is_behind(member, score)));
        }
        // Each was counted when the rank was loaded, unless another server moved it in between.
        (loaded + more).saturating_sub(fewer)
    }

    /// Which load brought a rank.
    pub(super) fn rank_load(&self, standing: &Standing) -> Option<usize> {
        self.ranks.loaded.get(standing).copied().flatten().map(|(_, load)| load)
    }

    /// Whether the batch has moved somebody on the board.
    pub(super) fn has_moved(&self, standing: &Standing) -> bool {
        self.ranks.boards.get(&standing.board).is_some_and(|board| board.moves.iter().any(|it| it.before != it.now))
    }

    pub(super) fn miss_rank(&mut self, standing: &Standing) {
        if !self.ranks.loaded.contains_key(standing) {
            self.ranks.loaded.insert(standing.clone(), None);
            self.missing.ranks.push(standing.clone());
        }
    }
}
