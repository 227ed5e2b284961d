//! What servers say to each other: late, not at all, or twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tally::core::ObjectId;
use tally::engine::follow::{Beat, Heard, Line, Wire, Word};
use tally::engine::{Lease, News, StoreError};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::link::Link;
use crate::random::Random;
use crate::store::Store;

/// How long an object counts as watched without another word.
const WATCHED_FOR: Duration = Duration::from_secs(10);

/// Everyone who listens, and what is watched.
pub(crate) struct Bus {
    random: Arc<Random>,
    loss: u64,
    twice: u64,
    lines: Mutex<Vec<Arc<Mailbox>>>,
    watched: Mutex<BTreeMap<ObjectId, Instant>>,
}

/// What is on its way to one server.
#[derive(Default)]
struct Mailbox {
    server: u64,
    letters: Mutex<Letters>,
    moved: Notify,
}

#[derive(Default)]
struct Letters {
    due: BTreeMap<(Instant, u64), Heard>,
    number: u64,
    is_cut: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bus {
    pub(crate) fn new(random: Arc<Random>, loss: u64, twice: u64) -> Self {
        let (lines, watched) = Default::default();
        Self { random, loss, twice, lines, watched }
    }

    /// Ends every connection on which a server listens.
    pub(crate) fn cut_all(&self) {
        for line in lock(&self.lines).iter() {
            lock(&line.letters).is_cut = true;
            line.moved.notify_one();
        }
    }

    fn listen(&self, server: u64) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox { server, ..Mailbox::default() });
        let mut lines = lock(&self.lines);
        lines.retain(|line| !lock(&line.letters).is_cut && line.server != server);
        lines.push(mailbox.clone());
        mailbox
    }

    fn tell(&self, heard: &Heard) {
        for line in lock(&self.lines).iter() {
            if self.random.percent(self.loss) {
                continue;
            }
            for _ in 0..1 + u64::from(self.random.percent(self.twice)) {
                let is_late = self.loss > 0 && self.random.percent(5);
                let at = Instant::now() + self.random.between_ms(1, if is_late { 5_000 } else { 20 });
                let mut letters = lock(&line.letters);
                letters.number += 1;
                let number = letters.number;
                letters.due.insert((at, number), heard.clone());
                line.moved.notify_one();
            }
        }
    }

    fn watch(&self, objects: &BTreeSet<ObjectId>) {
        let (mut watched, time) = (lock(&self.watched), Instant::now());
        watched.retain(|_, until| *until > time);
        watched.extend(objects.iter().map(|object| (object.clone(), time + WATCHED_FOR)));
    }

    fn tell_changed(&self, changed: &BTreeSet<ObjectId>) {
        let time = Instant::now();
        let watched: Vec<ObjectId> = {
            let watched = lock(&self.watched);
            changed.iter().filter(|object| watched.get(object).is_some_and(|until| *until > time)).cloned().collect()
        };
        if !watched.is_empty() {
            self.tell(&Heard::News(News::Counts(watched)));
        }
    }
}

/// How one server listens and speaks.
pub(crate) struct SimWire {
    pub(crate) store: Arc<Store>,
    pub(crate) bus: Arc<Bus>,
    pub(crate) link: Arc<Link>,
    pub(crate) server: u64,
}

/// One connection of it.
pub(crate) struct SimLine {
    store: Arc<Store>,
    bus: Arc<Bus>,
    link: Arc<Link>,
    mailbox: Arc<Mailbox>,
}

impl Wire for SimWire {
    type Line = SimLine;

    async fn connect(&mut self) -> Result<SimLine, StoreError> {
        let mailbox = self.link.call(|| self.bus.listen(self.server)).await?;
        Ok(SimLine { store: self.store.clone(), bus: self.bus.clone(), link: self.link.clone(), mailbox })
    }
}

impl Line for SimLine {
    async fn hear(&mut self) -> Option<Heard> {
        loop {
            self.link.stand_still().await;
            let next = {
                let mut letters = lock(&self.mailbox.letters);
                if letters.is_cut {
                    return None;
                }
                let next = letters.due.keys().next().copied();
                if let Some(place) = next.filter(|(at, _)| *at <= Instant::now()) {
                    return letters.due.remove(&place);
                }
                next
            };
            let far = Instant::now() + Duration::from_secs(3_600);
            tokio::select! {
                biased;
                () = sleep_until(next.map_or(far, |(at, _)| at)) => {}
                () = self.mailbox.moved.notified() => {}
            }
        }
    }

    async fn beat(&mut self, watching: &BTreeSet<ObjectId>, leases: &[Lease]) -> Result<Beat, StoreError> {
        let held = self.link.call(|| {
            self.bus.watch(watching);
            leases.iter().copied().filter(|work| self.store.lease(*work, self.mailbox.server)).collect()
        });
        Ok(Beat { watched: true, missed: false, leases: held.await? })
    }

    async fn watch(&mut self, _attended: &BTreeSet<ObjectId>, new: &BTreeSet<ObjectId>) -> Result<(), StoreError> {
        self.link.call(|| self.bus.watch(new)).await
    }

    async fn tell(&mut self, changed: &BTreeSet<ObjectId>, words: &BTreeSet<Word>) -> Result<(), StoreError> {
        let telling = self.link.call(|| {
            self.bus.tell_changed(changed);
            words.iter().for_each(|word| self.bus.tell(&Heard::News(word.news())));
        });
        telling.await
    }

    async fn lease(&mut self, work: Lease) -> Result<bool, StoreError> {
        self.link.call(|| self.store.lease(work, self.mailbox.server)).await
    }

    async fn release(&mut self, work: Lease) -> Result<(), StoreError> {
        self.link.call(|| self.store.release(work, self.mailbox.server)).await
    }

    async fn leave(&mut self, leases: &[Lease]) -> Result<(), StoreError> {
        let server = self.mailbox.server;
        self.link.call(|| leases.iter().for_each(|work| self.store.release(*work, server))).await
    }
}
