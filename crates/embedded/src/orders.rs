//! Orders, in memory beside the tables: how many stand before a place, and who stands at a rank.
//!
//! A place is a score and what was reached, a number of sixteen bytes; who it is stands in the tables, which have the same
//! order. An order is read when it is first asked about, by a thread of its own, and whoever asks waits for that. So an
//! opening costs nothing, and orders that nobody looks at are not in memory.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tally_core::rows::{Among, Changes, Key, OrderKey, Place, Row, Standing};
use tally_engine::{OrderFrom, StoreError};
use tokio::sync::Notify;

use crate::keys::place_number;
use crate::ordered::PlaceSum;
use crate::places::{CHUNK_ROWS, Places};
use crate::store::{Position, Snapshot, Store};
use crate::{codec, keys, unavailable};

/// Orders that are kept in memory; of more, those go that were not asked about for the longest time.
const ORDERS_MAX: usize = 64;
/// And that were not asked about for so long: one question may be about many.
const KEPT_FOR: Duration = Duration::from_secs(60);

fn number_of(place: &Place) -> u128 {
    place_number(place.score, place.reached)
}

/// Who stands somewhere; a row that is looked up and does not stand there any more is none.
type Found = Vec<(Key, Option<Row>)>;

/// A row that moved.
struct Moved {
    position: Position,
    before: Option<u128>,
    after: Option<u128>,
}

impl Places {
    fn apply(&mut self, moved: &Moved) {
        if let Some(before) = moved.before {
            self.remove(before);
        }
        if let Some(after) = moved.after {
            self.put(after);
        }
    }
}

/// An order that was asked about.
enum Known {
    /// Its places are being read; what changes meanwhile waits.
    Reading(Vec<Moved>),
    /// All of them, and when they were last asked about.
    Read(Places, Instant),
}

#[derive(Default)]
struct State {
    orders: HashMap<OrderKey, Known>,
    /// Why one could not be read, for whoever waits for it.
    failed: HashMap<OrderKey, StoreError>,
    /// How often the store had taken something back.
    taken_back: usize,
}

impl State {
    /// Lets go of an order that nobody has asked about for long.
    fn make_room(&mut self) {
        if self.orders.len() >= ORDERS_MAX {
            let read = self.orders.iter().filter_map(|(key, order)| match order {
                Known::Read(_, asked) => Some((*asked, key.clone())),
                Known::Reading(_) => None,
            });
            let oldest = read.min_by_key(|(asked, _)| *asked);
            if let Some((_, oldest)) = oldest.filter(|(asked, _)| asked.elapsed() > KEPT_FOR) {
                self.orders.remove(&oldest);
            }
        }
    }

    /// Never one that holds what had been taken back by then.
    fn order(&self, order: &OrderKey, taken_back: usize) -> Option<&Places> {
        match self.orders.get(order) {
            Some(Known::Read(order, _)) if self.taken_back == taken_back => Some(order),
            _ => None,
        }
    }
}

/// All orders.
#[derive(Clone, Default)]
pub(crate) struct Orders {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Told whenever an order was read.
    read: Notify,
}

impl Orders {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panics while it is held has changed one place at most, and the next opening reads all of them anew.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a commit.
    pub(crate) fn note(&self, position: Position, changes: &Changes) {
        let mut state = None;
        for (key, change) in &changes.rows {
            let Some(moved) = change.moves(key) else { continue };
            let state = state.get_or_insert_with(|| self.state());
            let (before, after) = (moved.before.as_ref().map(number_of), moved.after.as_ref().map(number_of));
            let order = state.orders.get_mut(&moved.order);
            let moved = Moved { position, before, after };
            match order {
                Some(Known::Reading(waiting)) => waiting.push(moved),
                Some(Known::Read(order, _)) => order.apply(&moved),
                None => {}
            }
        }
    }

    /// Waits until these orders are read. `snapshot` is taken while nobody commits, so that every commit is either in it or
    /// noted behind it.
    pub(crate) async fn ready(
        &self,
        store: &Store,
        orders: &[&OrderKey],
        snapshot: impl Fn(&dyn Fn() -> Snapshot) -> Snapshot,
    ) -> Result<(), StoreError> {
        loop {
            let read = self.shared.read.notified();
            let mut reading = false;
            for order in orders {
                reading |= self.look(store, order, &snapshot)?;
            }
            if !reading {
                return Ok(());
            }
            read.await;
        }
    }

    /// Whether an order is being read; begins to if it has to be.
    fn look(
        &self,
        store: &Store,
        key: &OrderKey,
        snapshot: &impl Fn(&dyn Fn() -> Snapshot) -> Snapshot,
    ) -> Result<bool, StoreError> {
        {
            let mut state = self.state();
            if let Some(error) = state.failed.remove(key) {
                return Err(error);
            }
            let taken_back = store.taken_back();
            if state.taken_back != taken_back {
                // Some of what was noted is not there any more.
                *state = State { taken_back, ..State::default() };
            }
            match state.orders.get_mut(key) {
                Some(Known::Reading(_)) => return Ok(true),
                Some(Known::Read(_, asked)) => {
                    *asked = Instant::now();
                    return Ok(false);
                }
                None => {}
            }
        }
        let begin = || {
            let mut state = self.state();
            state.orders.entry(key.clone()).or_insert_with(|| Known::Reading(Vec::new()));
            store.snapshot()
        };
        let snapshot = snapshot(&begin);
        let prefix = keys::order_prefix(key);
        let end = keys::after_prefix(&prefix);
        let few = snapshot.scan((Bound::Included(&prefix[..]), Bound::Excluded(&end[..])), CHUNK_ROWS, false);
        // A small one is read at once.
        if !matches!(&few, Ok(rows) if rows.len() >= CHUNK_ROWS) {
            let order = few.map_err(unavailable).and_then(|rows| {
                let mut order = Places::default();
                order.put_all(&rows, prefix.len())?;
                Ok(order)
            });
            self.finish(key, order, &snapshot);
            return Ok(true);
        }
        let (orders, of, snapshot) = (self.clone(), key.clone(), Arc::new(snapshot));
        let read = snapshot.clone();
        let work = move || orders.finish(&of, Places::read(&read, &of), &read);
        let thread = std::thread::Builder::new().name("tally-order".into()).spawn(work);
        if let Err(error) = thread {
            let error = StoreError::Unavailable(format!("a thread cannot be started: {error}"));
            self.finish(key, Err(error), &snapshot);
        }
        Ok(true)
    }

    /// Takes what was read, and on top what has changed since. If anything was taken back meanwhile, whoever asked
    /// looks again and finds it missing.
    fn finish(&self, key: &OrderKey, found: Result<Places, StoreError>, snapshot: &Snapshot) {
        let position = snapshot.position();
        let mut state = self.state();
        // Two may have begun to read it; the first one has it.
        if state.taken_back == snapshot.taken_back()
            && let Some(Known::Reading(waiting)) = state.orders.get_mut(key)
        {
            let waiting = std::mem::take(waiting);
            state.orders.remove(key);
            match found {
                Ok(mut order) => {
                    waiting.iter().filter(|moved| moved.position > position).for_each(|moved| order.apply(moved));
                    state.make_room();
                    state.orders.insert(key.clone(), Known::Read(order, Instant::now()));
                }
                Err(error) => _ = state.failed.insert(key.clone(), error),
            }
        }
        drop(state);
        self.shared.read.notify_waiters();
    }

    /// What the places of each order that is in memory add up to. Asked while nobody commits.
    pub(crate) fn sums(&self, taken_back: usize) -> HashMap<OrderKey, PlaceSum> {
        let state = self.state();
        let read = state.orders.iter().filter_map(|(key, order)| match order {
            Known::Read(order, _) => Some((key.clone(), order.sum())),
            Known::Reading(_) => None,
        });
        if state.taken_back == taken_back { read.collect() } else { HashMap::new() }
    }

    /// Has an order read anew by whoever asks next.
    pub(crate) fn read_anew(&self, order: &OrderKey) {
        self.state().orders.remove(order);
        self.shared.read.notify_waiters();
    }

    /// How many stand before each of these places; none where an order has to be read first. `taken_back` is as
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
            let Some(order) = state.order(&standing.order, taken_back) else { return Ok(None) };
            let at = match &standing.among {
                Among::First => place_number(standing.score, 0),
                Among::Last => place_number(standing.score, u64::MAX),
                Among::At { reached, .. } => place_number(standing.score, *reached),
            };
            found.push(order.before(at));
            if matches!(standing.among, Among::At { .. }) && order.has(at) {
                equals.push((number, order.has_several(at)));
            }
        }
        drop(state);
        for (number, several) in equals {
            found[number] += equals_before(store, &standings[number], several)?;
        }
        Ok(Some(found))
    }

    /// Rows of an order; none where it has to be read first.
    pub(crate) fn page(
        &self,
        store: &Store,
        key: &OrderKey,
        from: &OrderFrom,
        limit: usize,
        taken_back: usize,
    ) -> Result<Option<Found>, StoreError> {
        let prefix = keys::order_prefix(key);
        let end = keys::after_prefix(&prefix);
        let (start, skip, up) = match from {
            OrderFrom::Rank(rank) => {
                let state = self.state();
                let Some(order) = state.order(key, taken_back) else { return Ok(None) };
                let Some((number, skip)) = order.at_rank(*rank) else { return Ok(Some(Vec::new())) };
                (keys::order_number(key, number), skip, false)
            }
            // Right behind it: nothing is between a key and the same with a zero byte.
            OrderFrom::Behind(place) => ([keys::order_entry(key, place), vec![0]].concat(), 0, false),
            OrderFrom::Ahead(place) => (keys::order_entry(key, place), 0, true),
        };
        let range = if up {
            (Bound::Included(&prefix[..]), Bound::Excluded(&start[..]))
        } else {
            (Bound::Included(&start[..]), Bound::Excluded(&end[..]))
        };
        let found = store.scan(range, limit.saturating_add(skip), up).map_err(unavailable)?;
        let row = |bytes: &[u8]| {
            let place = keys::read_place(bytes, prefix.len());
            let at = place.and_then(|place| Some((key.key(&place.id)?, place)));
            let (row_key, place) = at.ok_or_else(|| keys::unreadable(bytes))?;
            let row = match key.row(&place) {
                Some(row) => Some(row),
                None => row_at(store, &row_key, &place)?,
            };
            Ok((row_key, row))
        };
        found.iter().skip(skip).map(|(bytes, _)| row(bytes)).collect::<Result<_, _>>().map(Some)
    }
}

/// The row of a key, if it stands at a place.
pub(crate) fn row_at(store: &Store, key: &Key, place: &Place) -> Result<Option<Row>, StoreError> {
    let Some(bytes) = store.get(&keys::row(key)).map_err(unavailable)? else { return Ok(None) };
    let row = codec::read_row(key, &bytes)?;
    Ok(row.stands(key).is_some_and(|(_, at)| at == *place).then_some(row))
}

/// Of those with the very same number, how many stand before one of them.
fn equals_before(store: &Store, standing: &Standing, several: bool) -> Result<u64, StoreError> {
    let Among::At { reached, id } = &standing.among else { return Ok(0) };
    let place = Place { score: standing.score, reached: *reached, id: id.clone() };
    // There is one, and it is mostly the row itself.
    if !several
        && let Some(key) = standing.order.key(id)
        && row_at(store, &key, &place)?.is_some()
    {
        return Ok(0);
    }
    let start = keys::order_number(&standing.order, number_of(&place));
    let end = keys::order_entry(&standing.order, &place);
    let found = store.scan((Bound::Included(&start), Bound::Excluded(&end)), usize::MAX, false);
    Ok(found.map_err(unavailable)?.len() as u64)
}
