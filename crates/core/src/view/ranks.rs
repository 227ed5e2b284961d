//! Ranks: how many stood before a place when that was loaded, moved by what the batch has changed since.
//!
//! They are shown and never decided on. A store that is far away is not even asked: the commit tells how many stand there
//! right after it, and whoever shows it is corrected by that, as with totals. An answer that is written down cannot be corrected,
//! so there the commit checks the rank that was loaded.

use super::looks::Look;
use super::{Map, State, View};
use crate::rows::{Key, OrderKey, Place, Row, Standing};

#[derive(Default)]
pub(super) struct Ranks {
    known: Map<Standing, Rank>,
    /// Those that the commit is to tell, each once.
    told: Vec<Standing>,
    orders: Map<OrderKey, Moves>,
    /// Of those in an order that wait for their numbers, the one that is told for all.
    newest: Map<OrderKey, Standing>,
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

/// The rows of an order that the batch has moved, and the places that they left and came to, each in order: so that a batch of many
/// who join one queue is counted by halving, not by going through all of them for each.
#[derive(Default)]
struct Moves {
    numbers: Map<Key, usize>,
    moves: Vec<Move>,
    left: Vec<Place>,
    taken: Vec<Place>,
}

impl Moves {
    /// Puts a place among others, or takes it away.
    fn change(places: &mut Vec<Place>, place: Option<&Place>, is_there: bool) {
        let Some(place) = place else { return };
        match (places.binary_search(place), is_there) {
            (Ok(at) | Err(at), true) => places.insert(at, place.clone()),
            (Ok(at), false) => _ = places.remove(at),
            (Err(_), false) => {}
        }
    }

    fn count(&mut self, moved: &Move, is_there: bool) {
        Self::change(&mut self.left, moved.before.as_ref(), is_there);
        Self::change(&mut self.taken, moved.now.as_ref(), is_there);
    }
}

struct Move {
    before: Option<Place>,
    now: Option<Place>,
}

impl Ranks {
    /// Takes note of a row as it is now, and as it was loaded.
    pub(super) fn moved(&mut self, key: &Key, before: Option<&Row>, now: Option<&Row>) {
        let Some(order) = key.order() else { return };
        let place = |row: Option<&Row>| row.and_then(|row| row.stands(key)).map(|(_, place)| place);
        let moved = Move { before: place(before), now: place(now) };
        let all = self.orders.entry(order).or_default();
        all.count(&moved, true);
        match all.numbers.get(key) {
            // It may have been loaded anew.
            Some(number) => {
                let was = std::mem::replace(&mut all.moves[*number], moved);
                all.count(&was, false);
            }
            None => {
                all.numbers.insert(key.clone(), all.moves.len());
                all.moves.push(moved);
            }
        }
    }

    /// All that were loaded.
    pub(super) fn loaded(&self) -> impl Iterator<Item = &Standing> {
        self.known.iter().filter(|(_, rank)| rank.state == State::Loaded).map(|(standing, _)| standing)
    }
}

impl View {
    /// Fills in how many stand before a place.
    pub fn fill_rank(&mut self, standing: Standing, before: u64) {
        let rank = Rank { loaded: before, state: State::Loaded, guarded: false, is_told: false, load: self.load() };
        self.ranks.known.insert(standing, rank);
    }

    /// How many rows stand before a place; where the commit tells it, counted from zero, and below it in the way of
    /// numbers that wrap around. One that is not loaded is missed, but does not stop the rule: what comes
    /// behind it in the batch would then be decided on the row as it was, and ask for its own rank only in the next round.
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

    /// How many more rows the batch has brought before a place than it took away.
    pub fn moved_before(&self, standing: &Standing) -> i64 {
        let Some(Moves { left, taken, .. }) = self.ranks.orders.get(&standing.order) else { return 0 };
        let before = |places: &[Place]| places.partition_point(|place| standing.is_behind(place)) as i64;
        before(taken) - before(left)
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

    /// The place that is told for this one. The numbers that a commit takes follow each other and nobody else's are between them, so all
    /// who wait for one in an order are off by the same.
    pub(super) fn told_as(&mut self, standing: &Standing) -> Standing {
        if !standing.is_to_be_numbered() {
            return standing.clone();
        }
        self.ranks.newest.entry(standing.order.clone()).or_insert_with(|| standing.clone()).clone()
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

    /// Whether the batch has moved somebody in the order.
    pub(super) fn has_moved(&self, standing: &Standing) -> bool {
        self.ranks.orders.get(&standing.order).is_some_and(|order| order.moves.iter().any(|it| it.before != it.now))
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
