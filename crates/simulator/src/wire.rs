//! What servers say to each other: late, not at all, or twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tally::engine::follow::{Beat, Heard, Here, Line, Share, Wire};
use tally::engine::{Lease, News, StoreError, Topic};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::link::Link;
use crate::random::Random;
use crate::store::Store;

/// How long a topic counts as watched without another word.
const WATCHED_FOR: Duration = Duration::from_secs(10);

/// Everyone who listens, and what is watched.
pub(crate) struct Bus {
    random: Arc<Random>,
    loss: u64,
    twice: u64,
    lines: Mutex<Vec<Arc<Mailbox>>>,
    watched: Mutex<BTreeMap<Topic, Instant>>,
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

    fn watch(&self, topics: &BTreeSet<Topic>) {
        let (mut watched, time) = (lock(&self.watched), Instant::now());
        watched.retain(|_, until| *until > time);
        watched.extend(topics.iter().map(|topic| (topic.clone(), time + WATCHED_FOR)));
    }

    fn tell_watched(&self, news: &News) {
        let (time, mut heard) = (Instant::now(), news.clone());
        if let News::Of(topics) = &mut heard {
            let watched = lock(&self.watched);
            topics.retain(|topic| topic.is_for_all() || watched.get(topic).is_some_and(|until| *until > time));
        }
        if !heard.is_empty() {
            self.tell(&Heard::News(heard));
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

    async fn beat(&mut self, here: &Here<'_>) -> Result<Beat, StoreError> {
        let server = self.mailbox.server;
        let beat = self.link.call(|| {
            self.bus.watch(here.watching);
            let share = if here.shares { self.store.leases.share(server) } else { Share::default() };
            (self.store.leases.take(here.leases, here.leases.len(), server), share)
        });
        let (leases, share) = beat.await?;
        Ok(Beat { watched: true, missed: false, leases, share })
    }

    async fn watch(&mut self, _attended: &BTreeSet<Topic>, new: &BTreeSet<Topic>) -> Result<(), StoreError> {
        self.link.call(|| self.bus.watch(new)).await
    }

    async fn tell(&mut self, news: &News) -> Result<(), StoreError> {
        self.link.call(|| self.bus.tell_watched(news)).await
    }

    async fn lease(&mut self, work: &[Lease], at_most: usize) -> Result<Vec<Lease>, StoreError> {
        self.link.call(|| self.store.leases.take(work, at_most, self.mailbox.server)).await
    }

    async fn release(&mut self, work: &[Lease]) -> Result<(), StoreError> {
        self.link.call(|| self.store.leases.release(work, self.mailbox.server)).await
    }

    async fn leave(&mut self, leases: &[Lease]) -> Result<(), StoreError> {
        self.link.call(|| self.store.leases.leave(leases, self.mailbox.server)).await
    }
}
