//! The rooms that a server follows, because somebody there reads them: a poll is answered from memory, and the store is asked a
//! few times a second for the room, however many ask here.
//!
//! What changes is told by whoever commits it ([`Topic::Room`]). A message that is lost costs time only: a room is read once a second
//! in any case, and whoever has seen a later version is not answered from memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roaring::RoaringTreemap;
use tally_core::query::{QueueAnswer, QueueQuery};
use tally_core::reply::TicketReply;
use tally_core::room::rows::{Phase, RoomCount};
use tally_core::rows::{OrderKey, Seq, TotalKey};
use tally_core::{Auth, Catalog, Name, Question};
use tally_engine::{Clock, Engine, OrderFrom, Range, Together, Topic};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::followed::{Followed, Recalled};
use super::queue::Queue;
use crate::Error;
use crate::read::Reader;
use crate::teller::Teller;

/// How often a room is read at most, and at least.
const NOT_BEFORE: Duration = Duration::from_millis(100);
const AT_LATEST: Duration = Duration::from_secs(1);
/// Rooms that one server follows. Polls of more are answered by the store.
const ROOMS_MAX: usize = 1_000;
/// Tickets in one page of a walk.
const PAGE: usize = 1_000;

/// All of them.
pub(crate) struct Rooms<E> {
    pub(crate) engine: Arc<E>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) auth: Auth,
    pub(crate) stopped: watch::Receiver<bool>,
    pub(crate) teller: Arc<Teller>,
    pub(super) from_memory: AtomicU64,
    pub(super) from_store: AtomicU64,
    followed: Mutex<HashMap<Name, Arc<Followed>>>,
    tasks: Mutex<JoinSet<()>>,
}

/// A room that is not followed any more, however that ended.
struct Ending<E: Engine>(Arc<Rooms<E>>, Arc<Followed>);

impl<E: Engine> Drop for Ending<E> {
    fn drop(&mut self) {
        self.0.forget(&self.1, true);
    }
}

impl<E: Engine> Rooms<E> {
    pub(crate) fn new(
        engine: Arc<E>,
        catalog: Arc<Catalog>,
        clock: Arc<dyn Clock>,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        let auth: Auth = Arc::new(serde_json::json!({"kind": "system"}));
        let (teller, followed, from_memory, from_store, tasks) = Default::default();
        Self { engine, catalog, clock, auth, stopped, teller, from_memory, from_store, followed, tasks }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Arc<Followed>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// To be told of the totals of every batch: where positions have fallen, all who follow the room are to know.
    pub(crate) fn hear(&self, totals: &[(TotalKey, i64)]) {
        for (key, _) in totals {
            if let TotalKey::Room { room, count: RoomCount::Version } = key {
                self.changed(room);
                if self.engine.is_shared() {
                    self.teller.add(Topic::Room(room.clone()));
                }
            }
        }
    }

    /// A room has changed, here or elsewhere.
    pub(crate) fn changed(&self, room: &Name) {
        if let Some(followed) = self.lock().get(room) {
            followed.change();
        }
    }

    /// Any of them may have.
    pub(crate) fn all_changed(&self) {
        self.lock().values().for_each(|followed| followed.change());
    }

    /// Follows a room that is there, unless there are too many.
    pub(super) fn follow(self: &Arc<Self>, room: &Name) -> Option<Arc<Followed>> {
        let mut all = self.lock();
        if let Some(followed) = all.get(room) {
            followed.touch();
            return Some(followed.clone());
        }
        if all.len() >= ROOMS_MAX || *self.stopped.borrow() {
            return None;
        }
        let followed = Arc::new(Followed::new(room.clone()));
        all.insert(room.clone(), followed.clone());
        // With the lock held, so that what is said last of a room is true.
        self.engine.watch(vec![Topic::Room(room.clone())], true);
        drop(all);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(self.clone().keep(followed.clone()));
        Some(followed)
    }

    /// Follows a room no more, if nobody reads it or in any case.
    fn forget(&self, followed: &Arc<Followed>, in_any_case: bool) -> bool {
        let mut all = self.lock();
        let is_it = all.get(&followed.name).is_some_and(|found| Arc::ptr_eq(found, followed));
        if !is_it || (!in_any_case && followed.has_readers()) {
            return !is_it;
        }
        all.remove(&followed.name);
        self.engine.watch(vec![Topic::Room(followed.name.clone())], false);
        drop(all);
        // Whoever watches it asks the store what became of it.
        *followed.queue.write().unwrap_or_else(PoisonError::into_inner) = None;
        followed.ticks.send_replace((i64::MIN, false));
        true
    }

    /// Waits until nothing is read any more, after it was stopped.
    pub(crate) async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while tasks.join_next().await.is_some() {}
    }

    /// A ticket from memory. Where that is behind what its holder has seen, the room is read first, once for all who wait for it.
    pub(super) async fn recall(&self, room: &Name, ticket: &str, seen: Option<i64>) -> Option<TicketReply> {
        let followed = self.lock().get(room).cloned()?;
        followed.touch();
        let told = match followed.recall(ticket, seen, self.now()) {
            Recalled::Told(reply) => Some(reply),
            Recalled::Unknown => None,
            Recalled::Behind => {
                self.catch_up(&followed).await.ok()?;
                match followed.recall(ticket, seen, self.now()) {
                    Recalled::Told(reply) => Some(reply),
                    Recalled::Behind | Recalled::Unknown => None,
                }
            }
        };
        told.map(|reply| *reply)
    }

    /// What time it is, where this server's clock is the store's.
    pub(super) fn now(&self) -> Option<tally_core::Timestamp> {
        (!self.engine.is_shared()).then(|| self.clock.now())
    }

    /// Takes note of a ticket as the store told it, if its room is followed.
    pub(super) fn note(&self, reply: &TicketReply) {
        let followed = self.lock().get(&reply.room).cloned();
        if let Some(followed) = followed
            && followed.note(reply)
        {
            followed.change();
        }
    }

    /// Keeps a room up to date for as long as somebody reads it.
    async fn keep(self: Arc<Self>, followed: Arc<Followed>) {
        let _ending = Ending(self.clone(), followed.clone());
        let mut stopped = self.stopped.clone();
        let keeping = async {
            let mut tick_at = Instant::now();
            loop {
                let from = Instant::now();
                match self.catch_up(&followed).await {
                    Ok(()) => {}
                    // It is gone.
                    Err(Error::Refused(_)) => return,
                    Err(error) => {
                        tracing::warn!(room = %followed.name, %error, "a room could not be read; it is tried again")
                    }
                }
                if tick_at <= Instant::now() {
                    followed.tick();
                    tick_at = Instant::now() + AT_LATEST;
                    if self.forget(&followed, false) {
                        return;
                    }
                }
                sleep_until(from + NOT_BEFORE).await;
                tokio::select! {
                    () = sleep_until(tick_at) => {}
                    () = followed.has_changed() => {}
                }
            }
        };
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => {}
            () = keeping => {}
        }
    }

    /// Brings a room up to date, unless somebody has begun to since this was asked for.
    async fn catch_up(&self, followed: &Followed) -> Result<(), Error> {
        let begun = followed.begun.load(Ordering::SeqCst);
        let _reading = followed.reading.lock().await;
        if followed.begun.load(Ordering::SeqCst) != begun {
            return Ok(());
        }
        followed.begin();
        let read_at = Instant::now();
        let log = followed.queue.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|queue| queue.log);
        if let Some(log) = log
            && let Some((answer, gone)) = self.log_since(&followed.name, log).await?
        {
            let mut queue = followed.queue.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(queue) = queue.as_mut().filter(|queue| queue.goes_on_with(&answer)) {
                let left = queue.go_on(answer, &gone, read_at);
                followed.wake(&left);
                return Ok(());
            }
        }
        let fresh = self.begin(&followed.name, read_at).await?;
        *followed.queue.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    async fn ask(&self, room: &Name, gone_after: Option<u64>) -> Result<QueueAnswer, Error> {
        let question = QueueQuery { room: room.clone(), gone_after };
        self.reader().read(|sight| question.read(sight)).await
    }

    fn reader(&self) -> Reader<'_, E> {
        Reader { engine: &*self.engine, catalog: &self.catalog, auth: &self.auth, now: self.clock.now() }
    }

    /// All that left a queue out of order since, and the room at the moment up to which that is. Nothing where it is not kept any more.
    async fn log_since(&self, room: &Name, mut log: u64) -> Result<Option<(QueueAnswer, Vec<u64>)>, Error> {
        let mut all = Vec::new();
        loop {
            let mut answer = self.ask(room, Some(log)).await?;
            match answer.gone.take() {
                Some(gone) if log <= answer.gone_last => all.extend(gone),
                Some(_) | None => return Ok(None),
            }
            if answer.gone_up_to >= answer.gone_last {
                return Ok(Some((answer, all)));
            }
            log = answer.gone_up_to;
        }
    }

    /// Reads a queue from the beginning. Nothing where the room was changed meanwhile in a way that needs another beginning.
    async fn begin(&self, room: &Name, read_at: Instant) -> Result<Option<Queue>, Error> {
        let first = self.ask(room, None).await?;
        if first.room.phase != Phase::Open {
            return Ok(Some(Queue::new(first, RoaringTreemap::new(), read_at)));
        }
        // Mostly all of the log is still there. Where places are drawn, those of an earlier room of this name may be in it.
        let is_drawn = first.room.settings.is_shuffled() && first.room.early.is_some_and(|early| early > 0);
        if !is_drawn && let Some((answer, gone)) = self.log_since(room, 0).await? {
            return Ok(Some(Queue::new(answer, gone.into_iter().collect(), read_at)));
        }
        let mut gone = RoaringTreemap::new();
        gone.insert_range(..=first.last);
        self.walk(room, &first, &mut gone).await?;
        let since = self.log_since(room, first.gone_last).await?;
        let same =
            |answer: &QueueAnswer| answer.room.secret == first.room.secret && answer.room.phase == first.room.phase;
        Ok(since.filter(|(answer, _)| same(answer)).map(|(answer, since)| {
            gone.extend(since);
            Queue::new(answer, gone, read_at)
        }))
    }

    /// Takes all who wait out of those who are gone. Who joined later is not among them, and who leaves meanwhile is in the log.
    async fn walk(&self, room: &Name, first: &QueueAnswer, gone: &mut RoaringTreemap) -> Result<(), Error> {
        let mut from = OrderFrom::Rank(0);
        loop {
            let range = Range::Order { order: OrderKey::Queue(room.clone()), from };
            let page = self.reader().scan(&range, PAGE).await?;
            for (key, _) in &page.items {
                if let tally_core::rows::Key::Ticket(key) = key
                    && let Seq::Given(seq) = key.seq
                {
                    gone.remove(first.room.place(seq));
                }
            }
            let last = page.items.last().and_then(|(key, row)| row.stands(key)).filter(|_| page.more);
            let Some((_, place)) = last else { return Ok(()) };
            from = OrderFrom::Behind(place);
        }
    }
}
