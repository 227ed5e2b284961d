//! A server: Tally on its own link to the store, a ring of keys, and somebody who watches counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tally::core::command::{Call, Command, Decided, PutApiKey, RevokeApiKey};
use tally::core::key;
use tally::core::rows::{ApiKey, TotalKey};
use tally::core::view::Wants;
use tally::engine::follow::Follower;
use tally::engine::{Engine, RunnerOptions};
use tally::{Error, KeyRing, Options, Tally};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::clock::SimClock;
use crate::engine::SimEngine;
use crate::link::Link;
use crate::names::{catalog, watched};
use crate::plan::{Flaw, Plan};
use crate::store::Store;
use crate::wire::{Bus, SimWire};

/// Where all servers of a run live.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) store: Arc<Store>,
    pub(crate) bus: Arc<Bus>,
    pub(crate) begin: Instant,
}

/// One run of one server.
pub(crate) struct Server {
    pub(crate) tally: Tally<SimEngine>,
    pub(crate) ring: Ring,
    pub(crate) link: Arc<Link>,
    pub(crate) number: usize,
    pub(crate) since: Instant,
    /// The counts as its watcher was shown them.
    pub(crate) shown: Mutex<BTreeMap<TotalKey, i64>>,
    died: Notify,
}

impl Server {
    /// Starts; what the store could not do is tried again.
    pub(crate) async fn start(world: &World, number: usize) -> Arc<Self> {
        let (ahead_us, drift_us) = world.plan.clocks[number];
        let clock = SimClock::new(world.begin, ahead_us, drift_us);
        let (loss, until) = (world.plan.call_loss, world.begin + world.plan.busy_for);
        let link = Arc::new(Link::new(world.store.random.clone(), (loss, until), world.plan.calm));
        let tally = loop {
            let (store, bus, link) = (world.store.clone(), world.bus.clone(), link.clone());
            let wire = SimWire { store: store.clone(), bus, link: link.clone(), server: world.store.random.next() };
            let follower = match world.plan.flaw {
                Flaw::GathersAnew => Follower::gathering_anew(wire),
                _ => Follower::new(wire),
            };
            let engine = SimEngine { store, link, clock, follower };
            match Tally::on(Arc::new(engine), options(world, clock)).await {
                Ok(tally) => break tally,
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        };
        let (ring, since) = (Ring::default(), Instant::now());
        while tally.read_keys(&ring).await.is_err() {
            sleep(Duration::from_millis(200)).await;
        }
        let server = Arc::new(Self { tally, ring, link, number, since, shown: Mutex::default(), died: Notify::new() });
        let (following, watching) = (server.clone(), server.clone());
        tokio::spawn(async move { following.tally.follow_keys(&following.ring).await });
        tokio::spawn(async move { watching.watch().await });
        server
    }

    /// Ends at once, with everything that it was doing.
    pub(crate) fn crash(&self) {
        self.link.cut();
        self.died.notify_waiters();
    }

    /// Applies a call. Nothing when the server died meanwhile: then nobody knows.
    pub(crate) async fn apply(&self, call: Call) -> Option<Result<Decided, Error>> {
        if self.link.is_cut() {
            return None;
        }
        let key = match &call.command {
            Command::Key(key::Command::RevokeApiKey(RevokeApiKey { id })) => Some((id.clone(), None)),
            Command::Key(key::Command::PutApiKey(PutApiKey { id, key })) => Some((id.clone(), Some(key.clone()))),
            _ => None,
        };
        let decided = tokio::select! {
            biased;
            () = self.died.notified() => return None,
            decided = self.tally.apply(call) => decided,
        };
        // As the handlers of the server do.
        if let (Ok(_), Some((id, key))) = (&decided, key) {
            self.ring.put(&id, key.as_ref());
        }
        Some(decided)
    }

    /// Watches counts as a client does: subscribes, reads, and takes what it is told.
    async fn watch(&self) {
        let (objects, relations) = watched();
        let Ok(mut subscription) = self.tally.watch(&objects, &relations) else { return };
        let pairs = objects.iter().flat_map(|object| relations.iter().map(move |relation| (object, relation)));
        let totals = pairs.map(|(object, relation)| {
            let (object, relation) = (object.clone(), relation.clone());
            TotalKey::Object { object, relation }
        });
        let wants = Wants::totals(totals.collect());
        let first = loop {
            match self.tally.engine().load(&wants).await {
                Ok(loaded) => break loaded.totals,
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        };
        self.shown().extend(wants.totals.into_iter().zip(first));
        loop {
            let changed = subscription.next().await;
            self.shown().extend(changed);
        }
    }

    pub(crate) fn shown(&self) -> MutexGuard<'_, BTreeMap<TotalKey, i64>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn options(world: &World, clock: SimClock) -> Options {
    let a_day = Duration::from_secs(86_400);
    Options {
        catalog: catalog(),
        runner: RunnerOptions { seed: Some(world.store.random.next()), ..RunnerOptions::default() },
        clock: Some(Arc::new(clock)),
        look_every: (world.plan.flaw == Flaw::NeverLooksAgain).then_some(a_day),
        looks_by_own_clock: world.plan.flaw == Flaw::LooksByOwnClock,
        ..Options::default()
    }
}

/// The ids of the keys that a server accepts.
#[derive(Default)]
pub(crate) struct Ring(Mutex<(BTreeSet<String>, u64)>);

impl Ring {
    fn keys(&self) -> MutexGuard<'_, (BTreeSet<String>, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, id: &str, key: Option<&ApiKey>) {
        let mut keys = self.keys();
        keys.1 += 1;
        match key {
            Some(_) => keys.0.insert(id.to_owned()),
            None => keys.0.remove(id),
        };
    }

    pub(crate) fn accepts(&self, id: &str) -> bool {
        self.keys().0.contains(id)
    }
}

impl KeyRing for Ring {
    fn changes(&self) -> u64 {
        self.keys().1
    }

    fn replace(&self, stored: &[(String, ApiKey)], changes: u64) -> bool {
        let mut keys = self.keys();
        if keys.1 != changes {
            return false;
        }
        keys.0 = stored.iter().filter(|(_, key)| key.revoked_at.is_none()).map(|(id, _)| id.clone()).collect();
        true
    }
}
