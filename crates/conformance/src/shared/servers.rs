//! Three servers on one store, and their clocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tally_core::command::{Call, Decided};
use tally_core::reply::Reply;
use tally_core::{Command, Timestamp};
use tally_engine::{Clock, Failure, Runner, SystemClock};

use super::line::Line;
use crate::EngineFactory;
use crate::auditor::assert_sound;
use crate::running::Running;
use crate::sample::{call, catalog};
use crate::stand::Stand;
use crate::sweeper::Sweeper;
use crate::universe::{Dump, Universe};

/// How many there are.
pub(crate) const SERVERS: usize = 3;

/// So far apart are the clocks of two servers that nobody keeps together.
const APART_MS: u64 = 60 * 60_000;

/// Whose time counts.
#[derive(Clone, Copy)]
pub(crate) enum Clocks {
    /// Each server has its own, minutes from the others: nothing in the case depends on time.
    Apart,
    /// What comes later must be stamped later. Several machines need a store that knows the time,
    /// and their own clocks are minutes apart; in one process there is one clock.
    OfTheStore,
}

/// A clock that is later each time that somebody looks, and ahead of the slowest by so much.
#[derive(Clone)]
struct Ticking {
    looks: Arc<AtomicU64>,
    ahead_ms: u64,
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(self.looks.fetch_add(1, Ordering::SeqCst) + self.ahead_ms)
    }
}

/// One server.
pub(crate) struct Server<F: EngineFactory> {
    pub(crate) engine: Arc<F::Engine>,
    pub(crate) line: Arc<Line<F::Engine>>,
    pub(crate) running: Running,
}

/// Three of them, the first with the clock that is furthest ahead and the last with the one that is
/// furthest behind.
pub(crate) struct Servers<F: EngineFactory> {
    pub(crate) stand: Stand<F>,
    pub(crate) all: Vec<Server<F>>,
}

impl<F: EngineFactory> Servers<F> {
    pub(crate) async fn start(stand: Stand<F>, clocks: Clocks) -> Self {
        let apart = stand.servers() || matches!(clocks, Clocks::Apart);
        let looks = Arc::new(AtomicU64::new(SystemClock.now().0 - APART_MS));
        let mut all: Vec<Server<F>> = Vec::new();
        for number in 0..SERVERS {
            let engine = match all.first() {
                Some(first) if !stand.servers() => first.engine.clone(),
                _ => stand.open().await,
            };
            let line = Arc::new(Line::new(engine.clone(), number as u64 * 1_000_000));
            let ahead_ms = if apart { (SERVERS - 1 - number) as u64 * APART_MS } else { APART_MS };
            let clock = Ticking { looks: looks.clone(), ahead_ms };
            let running = Running::start(&line, &catalog(), clock).await;
            all.push(Server { engine, line, running });
        }
        Self { stand, all }
    }

    /// The runner of a server, counted round.
    pub(crate) fn runner(&self, number: usize) -> Runner {
        self.all[number % SERVERS].running.runner.clone()
    }

    pub(crate) fn engine(&self, number: usize) -> &Arc<F::Engine> {
        &self.all[number % SERVERS].engine
    }

    /// Runs a command on one of them that must not be refused.
    pub(crate) async fn run(&self, number: usize, command: Command) -> Reply {
        answered(&self.runner(number), call(command)).await.reply.expect("nothing here is to be refused")
    }

    /// Carries every open job to its end, from one of them. Another may be in its way, so it goes on
    /// until all of them have ended.
    pub(crate) async fn sweep(&self, number: usize, sweep: Sweeper) {
        let server = &self.all[number % SERVERS];
        loop {
            match sweep.run(&self.stand, &server.engine, &server.running).await {
                Ok(ended) => return assert!(ended, "a sweep of all steps comes to the end"),
                Err(Failure::Overloaded) => {}
                Err(failure) => panic!("{failure}"),
            }
        }
    }

    /// Stops them. All of them must see one store, it must add up, and be there when it is opened again.
    pub(crate) async fn stop(self, universe: &Universe) -> Dump {
        let mut engines = Vec::new();
        for Server { engine, line, running } in self.all {
            running.stop().await;
            drop(line);
            engines.push(engine);
        }
        let first = engines.swap_remove(0);
        self.stand.drain(&first).await;
        assert_sound(&*first, universe).await;
        let dump = universe.dump(&*first).await;
        for other in engines {
            self.stand.drain(&other).await;
            assert_eq!(universe.dump(&*other).await, dump, "two servers see two stores");
        }
        let engine = self.stand.reopen(first).await;
        assert_eq!(universe.dump(&*engine).await, dump, "everything was settled, so everything is there");
        dump
    }
}

/// Sends a call until it is taken: what was turned away as too much did nothing.
pub(crate) async fn answered(runner: &Runner, call: Call) -> Decided {
    loop {
        match runner.apply(call.clone()).await {
            Ok(decided) => return decided,
            Err(Failure::Overloaded) => {}
            Err(failure) => panic!("{failure}"),
        }
    }
}
