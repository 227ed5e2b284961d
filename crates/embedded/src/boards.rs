//! The order of boards, in memory beside the tables: how many stand before a place, and who stands at a rank.
//!
//! A place is a score and when it was reached, in sixteen bytes; who it is stands in the tables, which have the same
//! order. A board is read when it is first asked about, by a thread of its own, and whoever asks waits for that. So an
//! opening costs nothing, and seasons that nobody looks at are not in memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indexset::BTreeSet;
use tally_core::SubjectId;
use tally_core::rows::{Among, BoardKey, Changes, Key, Row, Score, ScoreKey, Standing};
use tally_core::time::Stamp;
use tally_engine::{BoardFrom, StoreError};
use tokio::sync::Notify;

use crate::ordered::PlaceSum;
use crate::store::{Position, Snapshot, Store};
use crate::{codec, keys, unavailable};

/// Places are read in chunks of so many.
const CHUNK_ROWS: usize = 8_192;
/// Boards that are kept in memory; of more, those go that were not asked about for the longest time.
const BOARDS_MAX: usize = 64;
/// And that were not asked about for so long: one question may be about many.
const KEPT_FOR: Duration = Duration::from_secs(60);

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
    /// What all of them add up to, for recounts.
    sum: PlaceSum,
}

impl Order {
    fn put(&mut self, place: u128) {
        self.sum.put(place);
        if !self.places.insert(place) {
            *self.more.entry(place).or_default() += 1;
        }
    }

    fn remove(&mut self, place: u128) {
        let was_there = match self.more.get_mut(&place) {
            Some(1) => self.more.remove(&place).is_some(),
            Some(more) => {
                *more -= 1;
                true
            }
            None => self.places.remove(&place),
        };
        if was_there {
            self.sum.take(place);
        }
    }

    fn before(&self, place: u128) -> u64 {
        self.places.rank(&place) as u64 + self.more.range(..place).map(|(_, more)| more).sum::<u64>()
    }
}

/// A score that changed.
struct Moved {
    position: Position,
    before: Option<Score>,
    after: Option<Score>,
}

impl Order {
    fn apply(&mut self, moved: &Moved) {
        if let Some(before) = moved.before {
            self.remove(place(before.score, before.reached));
        }
        if let Some(after) = moved.after {
            self.put(place(after.score, after.reached));
        }
    }
}

/// A board that was asked about.
enum Board {
    /// Its places are being read; what changes meanwhile waits.
    Reading(Vec<Moved>),
    /// All of them, and when they were last asked about.
    Read(Order, Instant),
}

#[derive(Default)]
struct State {
    boards: HashMap<BoardKey, Board>,
    /// Why one could not be read, for whoever waits for it.
    failed: HashMap<BoardKey, StoreError>,
    /// How often the store had taken something back.
    taken_back: usize,
}

impl State {
    /// Lets go of a board that nobody has asked about for long.
    fn make_room(&mut self) {
        if self.boards.len() >= BOARDS_MAX {
            let read = self.boards.iter().filter_map(|(key, board)| match board {
                Board::Read(_, asked) => Some((*asked, key.clone())),
                Board::Reading(_) => None,
            });
            let oldest = read.min_by_key(|(asked, _)| *asked);
            if let Some((_, oldest)) = oldest.filter(|(asked, _)| asked.elapsed() > KEPT_FOR) {
                self.boards.remove(&oldest);
            }
        }
    }

    /// Never one that holds what had been taken back by then.
    fn order(&self, board: &BoardKey, taken_back: usize) -> Option<&Order> {
        match self.boards.get(board) {
            Some(Board::Read(order, _)) if self.taken_back == taken_back => Some(order),
            _ => None,
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
    /// Told whenever a board was read.
    read: Notify,
}

impl Boards {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panics while it is held has changed one place at most, and the next opening reads all of them anew.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a commit.
    pub(crate) fn note(&self, position: Position, changes: &Changes) {
        let mut state = None;
        for (key, change) in &changes.rows {
            let Key::Score(key) = key else { continue };
            let state = state.get_or_insert_with(|| self.state());
            let (before, after) = (as_score(change.before.as_ref()), as_score(change.after.as_ref()));
            let moved = Moved { position, before, after };
            match state.boards.get_mut(&key.board) {
                Some(Board::Reading(waiting)) => waiting.push(moved),
                Some(Board::Read(order, _)) => order.apply(&moved),
                None => {}
            }
        }
    }

    /// Waits until these boards are read. `snapshot` is taken while nobody commits, so that every commit is either in it or
    /// noted behind it.
    pub(crate) async fn ready(
        &self,
        store: &Store,
        boards: &[&BoardKey],
        snapshot: impl Fn(&dyn Fn() -> Snapshot) -> Snapshot,
    ) -> Result<(), StoreError> {
        loop {
            let read = self.shared.read.notified();
            let mut reading = false;
            for board in boards {
                reading |= self.look(store, board, &snapshot)?;
            }
            if !reading {
                return Ok(());
            }
            read.await;
        }
    }

    /// Whether a board is being read; begins to if it has to be.
    fn look(
        &self,
        store: &Store,
        board: &BoardKey,
        snapshot: &impl Fn(&dyn Fn() -> Snapshot) -> Snapshot,
    ) -> Result<bool, StoreError> {
        {
            let mut state = self.state();
            if let Some(error) = state.failed.remove(board) {
                return Err(error);
            }
            let taken_back = store.taken_back();
            if state.taken_back != taken_back {
                // Some of what was noted is not there any more.
                *state = State { taken_back, ..State::default() };
            }
            match state.boards.get_mut(board) {
                Some(Board::Reading(_)) => return Ok(true),
                Some(Board::Read(_, asked)) => {
                    *asked = Instant::now();
                    return Ok(false);
                }
                None => {}
            }
        }
        let begin = || {
            let mut state = self.state();
            state.boards.entry(board.clone()).or_insert_with(|| Board::Reading(Vec::new()));
            store.snapshot()
        };
        let snapshot = snapshot(&begin);
        let prefix = keys::board_prefix(board);
        let end = keys::after_prefix(&prefix);
        let few = snapshot.scan((Bound::Included(&prefix[..]), Bound::Excluded(&end[..])), CHUNK_ROWS, false);
        // A small one is read at once.
        if !matches!(&few, Ok(rows) if rows.len() >= CHUNK_ROWS) {
            let order = few.map_err(unavailable).and_then(|rows| {
                let mut order = Order::default();
                put_all(&mut order, &rows)?;
                Ok(order)
            });
            self.finish(board, order, &snapshot);
            return Ok(true);
        }
        let (boards, key, snapshot) = (self.clone(), board.clone(), Arc::new(snapshot));
        let read = snapshot.clone();
        let work = move || boards.finish(&key, read_order(&read, &key), &read);
        let thread = std::thread::Builder::new().name("tally-board".into()).spawn(work);
        if let Err(error) = thread {
            let error = StoreError::Unavailable(format!("a thread cannot be started: {error}"));
            self.finish(board, Err(error), &snapshot);
        }
        Ok(true)
    }

    /// Takes what was read, and on top what has changed since. If anything was taken back meanwhile, whoever asked
    /// looks again and finds it missing.
    fn finish(&self, board: &BoardKey, found: Result<Order, StoreError>, snapshot: &Snapshot) {
        let position = snapshot.position();
        let mut state = self.state();
        // Two may have begun to read it; the first one has it.
        if state.taken_back == snapshot.taken_back()
            && let Some(Board::Reading(waiting)) = state.boards.get_mut(board)
        {
            let waiting = std::mem::take(waiting);
            state.boards.remove(board);
            match found {
                Ok(mut order) => {
                    waiting.iter().filter(|moved| moved.position > position).for_each(|moved| order.apply(moved));
                    state.make_room();
                    state.boards.insert(board.clone(), Board::Read(order, Instant::now()));
                }
                Err(error) => _ = state.failed.insert(board.clone(), error),
            }
        }
        drop(state);
        self.shared.read.notify_waiters();
    }

    /// What the places of each board that is in memory add up to. Asked while nobody commits.
    pub(crate) fn sums(&self, taken_back: usize) -> HashMap<BoardKey, PlaceSum> {
        let state = self.state();
        let read = state.boards.iter().filter_map(|(key, board)| match board {
            Board::Read(order, _) => Some((key.clone(), order.sum)),
            Board::Reading(_) => None,
        });
        if state.taken_back == taken_back { read.collect() } else { HashMap::new() }
    }

    /// Has a board read anew by whoever asks next.
    pub(crate) fn read_anew(&self, board: &BoardKey) {
        self.state().boards.remove(board);
        self.shared.read.notify_waiters();
    }

    /// How many members stand before each of these places; none where a board has to be read first. `taken_back` is as
    /// of the rows that are read with it.
    pub(crate) fn before(
        &self,
        store: &Store,
        standings: &[Standing],
        taken_back: usize,
    ) -> Result<Option<Vec<u64>>, StoreError> {
        let state = self.state();
        let mut equals = Vec::new();
        let mut found: Vec<u64> = Vec::with_capacity(standings.len());
        for (number, standing) in standings.iter().enumerate() {
            let Some(order) = state.order(&standing.board, taken_back) else { return Ok(None) };
            let at = match &standing.among {
                Among::First => place(standing.score, Stamp(0)),
                Among::Last => place(standing.score, Stamp(u64::MAX)),
                Among::At { reached, .. } => place(standing.score, *reached),
            };
            found.push(order.before(at));
            if matches!(standing.among, Among::At { .. }) && order.places.contains(&at) {
                equals.push((number, order.more.contains_key(&at)));
            }
        }
        drop(state);
        for (number, several) in equals {
            found[number] += equals_before(store, &standings[number], several)?;
        }
        Ok(Some(found))
    }

    /// Members of a board in order; none where it has to be read first.
    pub(crate) fn page(
        &self,
        store: &Store,
        board: &BoardKey,
        from: &BoardFrom,
        limit: usize,
        taken_back: usize,
    ) -> Result<Option<Vec<(Key, Row)>>, StoreError> {
        let prefix = keys::board_prefix(board);
        let end = keys::after_prefix(&prefix);
        let entry = |member: &SubjectId, score: Score| {
            keys::board_entry(&ScoreKey { board: board.clone(), member: member.clone() }, score)
        };
        let (start, skip, up) = match from {
            BoardFrom::Rank(rank) => {
                let state = self.state();
                let Some(order) = state.order(board, taken_back) else { return Ok(None) };
                let Some((place, skip)) = at_rank(order, *rank) else { return Ok(Some(Vec::new())) };
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
        rows.iter().skip(skip).map(|(key, _)| read_entry(key)).collect::<Result<_, _>>().map(Some)
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

fn read_order(snapshot: &Snapshot, board: &BoardKey) -> Result<Order, StoreError> {
    let mut order = Order::default();
    let prefix = keys::board_prefix(board);
    let end = keys::after_prefix(&prefix);
    let mut after: Option<Vec<u8>> = None;
    loop {
        let low = after.as_ref().map_or(Bound::Included(&prefix[..]), |after| Bound::Excluded(&after[..]));
        let rows = snapshot.scan((low, Bound::Excluded(&end[..])), CHUNK_ROWS, false).map_err(unavailable)?;
        let Some((last, _)) = rows.last() else { return Ok(order) };
        after = Some(last.to_vec());
        put_all(&mut order, &rows)?;
    }
}

fn put_all(order: &mut Order, rows: &[crate::store::Row]) -> Result<(), StoreError> {
    for (bytes, _) in rows {
        let (_, place) = keys::split_place(bytes).ok_or_else(|| keys::unreadable(bytes))?;
        order.put(place);
    }
    Ok(())
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
