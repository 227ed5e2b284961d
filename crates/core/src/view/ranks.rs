//! Ranks: how many stood before a place when that was loaded, moved by what the batch has changed since.
//!
//! They are shown and never decided on. A store that is far away is not even asked: the commit tells how many stand there
//! right after it, and whoever shows it is corrected by that, as with totals. An answer that is written down cannot be corrected,
//! so there the commit checks the rank that was loaded.

use super::looks::Look;
use super::{Map, State, View};
use crate::id::SubjectId;
use crate::rows::{BoardKey, Row, Score, ScoreKey, Standing};

#[derive(Default)]
pub(super) struct Ranks {
    known: Map<Standing, Rank>,
    /// Those that the commit is to tell, each once.
    told: Vec<Standing>,
    boards: Map<BoardKey, Moves>,
}

struct Rank {
    /// How many stood before.
    loaded: u64,
    state: State,
    /// Whether an answer that is written down shows it.
    guarded: bool,
    is_told: bool,
    /// Which load brought it.
    load: usize,
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
            // It may have been loaded anew.
            Some(place) => (moves[*place].before, moves[*place].now) = (before, now),
            None => {
                places.insert(key.member.clone(), moves.len());
                moves.push(Move { member: key.member.clone(), before, now });
            }
        }
    }

    /// All that were loaded.
    pub(super) fn loaded(&self) -> impl Iterator<Item = &Standing> {
        self.known.iter().filter(|(_, rank)| rank.state == State::Loaded).map(|(standing, _)| standing)
    }
}

fn as_score(row: Option<&Row>) -> Option<Score> {
    if let Some(Row::Score(score)) = row { Some(*score) } else { None }
}

impl View {
    /// Fills in how many stand before a place.
    pub fn fill_rank(&mut self, standing: Standing, before: u64) {
        let rank = Rank { loaded: before, state: State::Loaded, guarded: false, is_told: false, load: self.load() };
        self.ranks.known.insert(standing, rank);
    }

    /// How many members stand before a place; where the commit tells it, counted from zero, and below it in the way of
    /// numbers that wrap around. One that is not loaded is missed, but does not stop the rule: what comes
    /// behind it in the batch would then be decided on the score as it was, and ask for its own rank only in the next round.
    pub fn before(&mut self, standing: &Standing) -> u64 {
        let (is_far, exact) = (self.is_far(), self.exact);
        if is_far && !exact && !self.ranks.known.contains_key(standing) {
            let blind = Rank { loaded: 0, state: State::Blind, guarded: false, is_told: false, load: 0 };
            self.ranks.known.insert(standing.clone(), blind);
        }
        let usable = |rank: &&mut Rank| match rank.state {
            State::Loaded => true,
            State::Blind => !exact,
            State::Missing => false,
        };
        let Some(rank) = self.ranks.known.get_mut(standing).filter(usable) else {
            self.miss_rank(standing);
            return 0;
        };
        rank.guarded |= is_far && exact;
        self.look(Look::Rank(standing.clone()));
        self.final_rank(standing)
    }

    /// How many stand before a place after the whole batch; of one that was not loaded, how many more than before it.
    pub fn final_rank(&self, standing: &Standing) -> u64 {
        let loaded = self.ranks.known.get(standing).map_or(0, |rank| rank.loaded);
        loaded.wrapping_add_signed(self.moved_before(standing))
    }

    /// How many more members the batch has brought before a place than it took away.
    pub fn moved_before(&self, standing: &Standing) -> i64 {
        let Some(Moves { moves, .. }) = self.ranks.boards.get(&standing.board) else { return 0 };
        let stands =
            |member, score: Option<Score>| i64::from(score.is_some_and(|score| standing.is_behind(member, score)));
        moves.iter().map(|it| stands(&it.member, it.now) - stands(&it.member, it.before)).sum()
    }

    /// Places of which the commit is to tell how many stand before them, right after it.
    pub fn told_ranks(&self) -> &[Standing] {
        &self.ranks.told
    }

    /// Every rank that an answer stands on, as it was loaded.
    pub fn seen_ranks(&self) -> impl Iterator<Item = (&Standing, u64)> {
        let seen = self.ranks.known.iter().filter(|(_, rank)| rank.guarded);
        seen.map(|(standing, rank)| (standing, rank.loaded))
    }

    /// Has the commit tell a rank. One that it checks is known already.
    pub fn tell_rank(&mut self, standing: &Standing) {
        if let Some(rank) = self.ranks.known.get_mut(standing)
            && !rank.guarded
            && !std::mem::replace(&mut rank.is_told, true)
        {
            self.ranks.told.push(standing.clone());
        }
    }

    /// Has the commit check a rank.
    pub fn hold_rank(&mut self, standing: &Standing) {
        if let Some(rank) = self.ranks.known.get_mut(standing) {
            rank.guarded = true;
        }
    }

    /// Which load brought a rank.
    pub(super) fn rank_load(&self, standing: &Standing) -> Option<usize> {
        self.ranks.known.get(standing).filter(|rank| rank.state == State::Loaded).map(|rank| rank.load)
    }

    /// Whether the batch has moved somebody on the board.
    pub(super) fn has_moved(&self, standing: &Standing) -> bool {
        self.ranks.boards.get(&standing.board).is_some_and(|board| board.moves.iter().any(|it| it.before != it.now))
    }

    /// Notes that a rank is to be loaded, once however many ask for it.
    pub(super) fn miss_rank(&mut self, standing: &Standing) {
        let missing = Rank { loaded: 0, state: State::Blind, guarded: false, is_told: false, load: 0 };
        let rank = self.ranks.known.entry(standing.clone()).or_insert(missing);
        if rank.state != State::Missing {
            rank.state = State::Missing;
            self.missing.ranks.push(standing.clone());
        }
    }
}
