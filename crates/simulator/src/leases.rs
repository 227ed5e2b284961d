//! Who does what, and who is there, as the store knows it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tally::engine::Lease;
use tally::engine::follow::Share;
use tokio::time::Instant;

/// How long work is held, and a server counts as there, without another word.
const HELD_FOR: Duration = Duration::from_secs(10);

/// Leases, and the servers that share what is due.
pub(crate) struct Leases {
    held: Mutex<BTreeMap<Lease, (u64, Instant)>>,
    servers: Mutex<BTreeMap<u64, Instant>>,
    /// Wrong on purpose: they never lapse.
    for_ever: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Leases {
    pub(crate) fn new(for_ever: bool) -> Self {
        Self { held: Mutex::default(), servers: Mutex::default(), for_ever }
    }

    /// Takes the first that nobody else has, so many at most.
    pub(crate) fn take(&self, work: &[Lease], at_most: usize, server: u64) -> Vec<Lease> {
        let (mut held, time) = (lock(&self.held), Instant::now());
        held.retain(|_, (_, until)| self.for_ever || *until > time);
        let free = |work: &&Lease| held.get(work).is_none_or(|(holder, _)| *holder == server);
        let taken: Vec<Lease> = work.iter().filter(free).take(at_most).copied().collect();
        held.extend(taken.iter().map(|work| (*work, (server, time + HELD_FOR))));
        taken
    }

    pub(crate) fn release(&self, work: &[Lease], server: u64) {
        lock(&self.held).retain(|held, (holder, _)| *holder != server || !work.contains(held));
    }

    /// A server's place among those that share.
    pub(crate) fn share(&self, server: u64) -> Share {
        let (mut servers, time) = (lock(&self.servers), Instant::now());
        servers.retain(|_, until| *until > time);
        servers.insert(server, time + HELD_FOR);
        Share { rank: servers.range(..server).count(), servers: servers.len() }
    }

    pub(crate) fn leave(&self, work: &[Lease], server: u64) {
        self.release(work, server);
        lock(&self.servers).remove(&server);
    }

    /// The store forgets them all, as one that has failed over may.
    pub(crate) fn lose(&self) {
        lock(&self.held).clear();
        lock(&self.servers).clear();
    }
}
