//! The servers of a run, those that are up, and what happens to them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tally::core::command::{Call, Command};
use tally::{Error, core::Refusal, core::Reply};
use tokio::time::{Instant, sleep};

use crate::history::History;
use crate::names;
use crate::server::{Server, World};

/// Every place where a server runs, or will again.
pub(crate) struct Fleet {
    pub(crate) world: World,
    pub(crate) history: History,
    places: Vec<Mutex<Option<Arc<Server>>>>,
}

impl Fleet {
    pub(crate) async fn start(world: World) -> Arc<Self> {
        let places = world.plan.clocks.iter().map(|_| Mutex::new(None)).collect();
        let fleet = Arc::new(Self { world, history: History::default(), places });
        for number in 0..fleet.places.len() {
            fleet.put(number, Some(Server::start(&fleet.world, number).await));
        }
        fleet
    }

    fn put(&self, number: usize, server: Option<Arc<Server>>) -> Option<Arc<Server>> {
        let mut place = self.places[number].lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, server)
    }

    pub(crate) fn server(&self, number: usize) -> Option<Arc<Server>> {
        self.places[number % self.places.len()].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those that are up.
    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        (0..self.places.len()).filter_map(|number| self.server(number)).collect()
    }

    /// Asks one of the servers, waits, and writes down what came of it.
    pub(crate) async fn ask(
        &self,
        number: usize,
        command: Command,
        once: Option<&str>,
    ) -> Option<Result<Reply, Refusal>> {
        let server = loop {
            match self.server(number) {
                Some(server) => break server,
                None => sleep(Duration::from_millis(100)).await,
            }
        };
        let place = self.history.ask(command.clone(), once.map(str::to_owned));
        let call = Call { once: once.map(names::once), ..Call::system(command) };
        let reply = match server.apply(call).await {
            Some(Ok(decided)) => Some(decided.reply),
            Some(Err(Error::Refused(refusal))) => Some(Err(refusal)),
            Some(Err(_)) | None => None,
        };
        self.history.answer(place, reply.clone());
        reply
    }

    /// Lets things happen to the servers until it is time to stop.
    pub(crate) async fn trouble(self: Arc<Self>, until: Instant) {
        let random = self.world.store.random.clone();
        loop {
            sleep(random.between_ms(200, 4_000)).await;
            if Instant::now() >= until {
                return;
            }
            let number = random.below(self.places.len() as u64) as usize;
            let Some(server) = self.server(number) else { continue };
            let soon = Instant::now() + random.between_ms(10, 6_000);
            // So long that others take over what it has, and it does not know.
            let long = Instant::now() + random.between_ms(9_000, 15_000);
            match random.below(7) {
                0 => server.link.pause(soon),
                1 => server.link.lose_store(soon),
                2 => self.world.bus.cut_all(),
                3 => {
                    server.crash();
                    self.put(number, None);
                    let fleet = self.clone();
                    tokio::spawn(async move {
                        sleep(fleet.world.store.random.between_ms(1, 5_000)).await;
                        let server = Server::start(&fleet.world, number).await;
                        fleet.put(number, Some(server));
                    });
                }
                4 => server.link.pause(long),
                5 => self.world.store.leases.lose(),
                _ => {}
            }
        }
    }
}
