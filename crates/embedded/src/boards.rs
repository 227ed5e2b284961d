//! The order of boards, in memory beside the tables: how many stand before a place, and who stands at a rank.
//!
//! A place is a score and when it was reached, in sixteen bytes; who it is stands in the tables, which have the same
//! order. After an opening the places are read in the background, and the first question waits for that.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use indexset::BTreeSet;
use tally_core::SubjectId;
use tally_core::rows::{Among, BoardKey, Changes, Key, Row, Score, ScoreKey, Standing};
use tally_core::time::Stamp;
use tally_engine::{BoardFrom, StoreError};

use crate::store::{Position, Snapshot, Store};
use crate::{codec, keys, unavailable};

/// Places are read in chunks of so many.
const CHUNK_ROWS: usize = 8_192;

/// Higher scores first; of equal ones, those that were reached first.
fn place(score: i64, reached: Stamp) -> u128 {
    u128::from(keys::descending(score)) << 64 | u128::from(reached.0)
}

/// The places of one board.
#[derive(Default)]
struct Order {
    places: BTreeSet<u128>,
    /// How many more there are of a place that several have: only where rows came from a store with several servers.
    more: BTreeMap<u128, u64>,
}

impl Order {
    fn put(&mut self, place: u128) {
        if !self.places.insert(place) {
            *self.more.entry(place).or_default() += 1;
        }
    }

    fn remove(&mut self, place: u128) {
        match self.more.get_mut(&place) {
            Some(1) => _ = self.more.remove(&place),
            Some(more) => *more -= 1,
            None => _ = self.places.remove(&place),
        }
    }

    fn before(&self, place: u128) -> u64 {
        self.places.rank(&place) as u64 + self.more.range(..place).map(|(_, more)| more).sum::<u64>()
    }
}

/// A score that changed.
struct Moved {
    position: Position,
    key: ScoreKey,
    before: Option<Score>,
    after: Option<Score>,
}

#[derive(Default)]
struct State {
    orders: HashMap<BoardKey, Order>,
    /// Set while places are read from the tables; what changes meanwhile waits in `moved`.
    reading: bool,
    /// Which reading it is.
    readings: u64,
    moved: Vec<Moved>,
    /// Why they could not be read.
    failed: Option<StoreError>,
    /// How often the store had taken something back when they were read.
    taken_back: usize,
}

impl State {
    fn apply(&mut self, moved: &Moved) {
        let order = self.orders.entry(moved.key.board.clone()).or_default();
        if let Some(before) = moved.before {
            order.remove(place(before.score, before.reached));
        }
        if let Some(after) = moved.after {
            order.put(place(after.score, after.reached));
        }
    }
}

/// The orders of all boards.
#[derive(Clone, Default)]
pub(crate) struct Boards {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    read: Condvar,
}

impl Boards {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panics while it is held has changed one place at most, and the next opening reads all of them anew.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what there is, in a thread of its own if there is anything.
    pub(crate) fn read(&self, store: &Store) -> Result<(), StoreError> {
        let reading = {
            let mut state = self.state();
            let taken_back = store.taken_back();
            if state.reading && state.taken_back == taken_back {
                return Ok(());
            }
            let reading = state.readings + 1;
            *state = State { reading: true, readings: reading, taken_back, ..State::default() };
            reading
        };
        // What is committed from here on is noted; what was committed before is in the snapshot.
        let snapshot = store.snapshot();
        let first = snapshot.scan(keys::table(keys::BOARD_ORDER), 1, false);
        if matches!(&first, Ok(rows) if rows.is_empty()) {
            self.finish(reading, Ok(HashMap::new()), snapshot.position());
            return Ok(());
        }
        let boards = self.clone();
        let work = move || boards.finish(reading, read_orders(&snapshot), snapshot.position());
        let thread = std::thread::Builder::new().name("tally-boards".into()).spawn(work);
        if let Err(error) = thread {
            let error = StoreError::Unavailable(format!("a thread cannot be started: {error}"));
            self.finish(reading, Err(error), 0);
        }
        Ok(())
    }

    /// Takes what was read, and on top what has changed since; unless a later reading has begun.
    fn finish(&self, reading: u64, found: Result<HashMap<BoardKey, Order>, StoreError>, position: Position) {
        let mut state = self.state();
        if state.readings != reading {
            return;
        }
        match found {
            Ok(orders) => state.orders = orders,
            Err(error) => state.failed = Some(error),
        }
        for moved in std::mem::take(&mut state.moved) {
            if moved.position > position {
                state.apply(&moved);
            }
        }
        state.reading = false;
        drop(state);
        self.shared.read.notify_all();
    }

    /// Takes note of a commit.
    pub(crate) fn note(&self, position: Position, changes: &Changes) {
        let mut state = None;
        for (key, change) in &changes.rows {
            let Key::Score(key) = key else { continue };
            let state = state.get_or_insert_with(|| self.state());
            let (before, after) = (as_score(change.before.as_ref()), as_score(change.after.as_ref()));
            let moved = Moved { position, key: key.clone(), before, after };
            if state.reading { state.moved.push(moved) } else { state.apply(&moved) }
        }
    }

    /// Waits until the places are read. Where the store took back what was not durable, they are read again.
    fn ready(&self, store: &Store) -> Result<MutexGuard<'_, State>, StoreError> {
        if self.state().taken_back != store.taken_back() || self.state().failed.is_some() {
            self.read(store)?;
        }
        let state = self.state();
        let state = self.shared.read.wait_while(state, |state| state.reading);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match &state.failed {
            Some(error) => Err(error.clone()),
            None => Ok(state),
        }
    }

    /// How many members stand before each of these places.
    pub(crate) fn before(&self, store: &Store, standings: &[Standing]) -> Result<Vec<u64>, StoreError> {
        if standings.is_empty() {
            return Ok(Vec::new());
        }
        let state = self.ready(store)?;
        let mut equals = Vec::new();
        let mut found: Vec<u64> = Vec::with_capacity(standings.len());
        for (number, standing) in standings.iter().enumerate() {
            let order = state.orders.get(&standing.board);
            let at = match &standing.among {
                Among::First => place(standing.score, Stamp(0)),
                Among::Last => place(standing.score, Stamp(u64::MAX)),
                Among::At { reached, .. } => place(standing.score, *reached),
            };
            found.push(order.map_or(0, |order| order.before(at)));
            if let (Among::At { .. }, Some(order)) = (&standing.among, order)
                && order.places.contains(&at)
            {
                equals.push((number, order.more.contains_key(&at)));
            }
        }
        drop(state);
        for (number, several) in equals {
            found[number] += equals_before(store, &standings[number], several)?;
        }
        Ok(found)
    }

    /// Members of a board in order.
    pub(crate) fn page(
        &self,
        store: &Store,
        board: &BoardKey,
        from: &BoardFrom,
        limit: usize,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let prefix = keys::board_prefix(board);
        let end = keys::after_prefix(&prefix);
        let entry = |member: &SubjectId, score: Score| {
            keys::board_entry(&ScoreKey { board: board.clone(), member: member.clone() }, score)
        };
        let (start, skip, up) = match from {
            BoardFrom::Rank(rank) => {
                let state = self.ready(store)?;
                let Some((place, skip)) = state.orders.get(board).and_then(|order| at_rank(order, *rank)) else {
                    return Ok(Vec::new());
                };
                (keys::board_place(board, place), skip, false)
            }
            // Right behind it: nothing is between a key and the same with a zero byte.
            BoardFrom::Behind(member, score) => ([entry(member, *score), vec![0]].concat(), 0, false),
            BoardFrom::Ahead(member, score) => (entry(member, *score), 0, true),
        };
        let range = if up {
            (Bound::Included(&prefix[..]), Bound::Excluded(&start[..]))
        } else {
            (Bound::Included(&start[..]), Bound::Excluded(&end[..]))
        };
        let rows = store.scan(range, limit.saturating_add(skip), up).map_err(unavailable)?;
        rows.iter().skip(skip).map(|(key, _)| read_entry(key)).collect()
    }
}

/// The place of a rank, and how many of the same place to leave out.
fn at_rank(order: &Order, rank: u64) -> Option<(u128, usize)> {
    let extra: u64 = order.more.values().sum();
    let index = usize::try_from(rank.saturating_sub(extra)).ok()?;
    let place = *order.places.get_index(index)?;
    let skip = usize::try_from(rank - order.before(place)).ok()?;
    Some((place, skip))
}

/// Of those with the very same place, how many stand before a member.
fn equals_before(store: &Store, standing: &Standing, several: bool) -> Result<u64, StoreError> {
    let Among::At { reached, member } = &standing.among else { return Ok(0) };
    let key = ScoreKey { board: standing.board.clone(), member: member.clone() };
    let score = Score { score: standing.score, reached: *reached };
    if !several {
        // There is one, and it is mostly the member itself.
        let row = store.get(&keys::row(&Key::Score(key.clone()))).map_err(unavailable)?;
        if row.is_some_and(|bytes| codec::read_score(&bytes).is_ok_and(|found| found == score)) {
            return Ok(0);
        }
    }
    let start = keys::board_place(&standing.board, place(standing.score, *reached));
    let end = keys::board_entry(&key, score);
    let found = store.scan((Bound::Included(&start), Bound::Excluded(&end)), usize::MAX, false);
    Ok(found.map_err(unavailable)?.len() as u64)
}

fn read_orders(snapshot: &Snapshot) -> Result<HashMap<BoardKey, Order>, StoreError> {
    let mut orders: HashMap<BoardKey, Order> = HashMap::new();
    let (_, end) = keys::table(keys::BOARD_ORDER);
    let mut after: Option<Vec<u8>> = None;
    loop {
        let low = after.as_ref().map_or(Bound::Included(&[keys::BOARD_ORDER][..]), |after| Bound::Excluded(&after[..]));
        let rows = snapshot.scan((low, end), CHUNK_ROWS, false).map_err(unavailable)?;
        let Some((last, _)) = rows.last() else { return Ok(orders) };
        after = Some(last.to_vec());
        let mut board: Option<(Vec<u8>, BoardKey)> = None;
        for (bytes, _) in &rows {
            let (prefix, place) = keys::split_place(bytes).ok_or_else(|| keys::unreadable(bytes))?;
            if board.as_ref().is_none_or(|(of, _)| of != prefix) {
                let key = keys::read_board(prefix).ok_or_else(|| keys::unreadable(bytes))?;
                board = Some((prefix.to_vec(), key));
            }
            if let Some((_, key)) = &board {
                match orders.get_mut(key) {
                    Some(order) => order.put(place),
                    None => orders.entry(key.clone()).or_default().put(place),
                }
            }
        }
    }
}

fn read_entry(bytes: &[u8]) -> Result<(Key, Row), StoreError> {
    keys::read_board_entry(bytes)
        .map(|(key, score)| (Key::Score(key), Row::Score(score)))
        .ok_or_else(|| keys::unreadable(bytes))
}

fn as_score(row: Option<&Row>) -> Option<Score> {
    if let Some(Row::Score(score)) = row { Some(*score) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_several_have_are_counted_each() {
        let mut order = Order::default();
        for score in [5, 5, 5, 9, 1] {
            order.put(place(score, Stamp(7)));
        }
        let before = |order: &Order, score| order.before(place(score, Stamp(7)));
        assert_eq!([9, 5, 1, 0].map(|score| before(&order, score)), [0, 1, 4, 5]);
        for rank in 0..5 {
            let (at, skip) = at_rank(&order, rank).unwrap();
            assert_eq!(order.before(at) + skip as u64, rank, "so many are left out from there on");
        }
        assert_eq!(at_rank(&order, 5), None);
        order.remove(place(5, Stamp(7)));
        order.remove(place(9, Stamp(7)));
        assert_eq!([9, 5, 1, 0].map(|score| before(&order, score)), [0, 0, 2, 3]);
    }
}
