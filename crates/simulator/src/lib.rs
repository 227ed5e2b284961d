//! Several servers on one store that is made up, from one seed, in virtual time.
//!
//! Everything that Tally does on a shared store runs here as it is: the runner, the follower, jobs, live counts, keys. Only
//! the store, the way to it, the messages between servers and the clocks are made up, and each of them fails in every way
//! that the real ones can: clocks are an hour off and drift, servers stand still, die between any two steps and come back,
//! calls are lost before or after they are done, messages come late, twice or not at all. One thread, no real time, no
//! I/O: a seed is the same run on every machine. An auditor beside it says what cannot have been.
//!
//! ```text
//! cargo xtask simulate --seeds 10000     runs so many
//! cargo xtask simulate --seed 4711       runs one again
//! ```

mod auditor;
mod client;
mod clock;
mod engine;
mod fleet;
mod history;
mod leases;
mod link;
mod names;
mod plan;
mod random;
mod server;
mod store;
mod watcher;
mod wire;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fleet::Fleet;
use tokio::time::{Instant, sleep, timeout};

pub use plan::Flaw;
use plan::Plan;
use random::Random;
use server::World;
use store::Store;
use wire::Bus;

/// Clients at once.
const CLIENTS: u64 = 3;
/// No run takes longer than this in its own time.
const ENDS_WITHIN: Duration = Duration::from_secs(1_800);
/// While nobody asks for anything, a server asks the store so often in a second at most.
const IDLE_CALLS_MAX: u64 = 10;

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// What cannot have been; nothing, when all is well.
    pub problems: Vec<String>,
    /// A sum over everything that happened, which is the same whenever the seed is.
    pub sum: u64,
}

/// Runs one seed.
pub fn run(seed: u64, flaw: Flaw) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without I/O starts").block_on(async {
        let random = Arc::new(Random::new(seed));
        let plan = Plan::new(&random, flaw);
        match timeout(ENDS_WITHIN, simulate(random.clone(), plan)).await {
            Ok(problems) => Outcome { problems, sum: random.next() },
            Err(_) => Outcome { problems: vec!["it does not end".into()], sum: random.next() },
        }
    })
}

async fn simulate(random: Arc<Random>, plan: Plan) -> Vec<String> {
    let store = Arc::new(Store::new(random.clone(), &plan));
    let bus = Arc::new(Bus::new(random, plan.message_loss, plan.message_twice));
    let fleet = Fleet::start(World { plan, store, bus, begin: Instant::now() }).await;
    let until = Instant::now() + fleet.world.plan.busy_for;
    // One edge that stays, so that another one beside it never passes a limit of two.
    while fleet.ask(0, names::relate("shelf", "shelf:stays", "keeper"), None).await.is_none() {}
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(tokio::spawn(client::client(fleet.clone(), number)));
    }
    if fleet.world.plan.calm {
        clients.push(tokio::spawn(client::storm(fleet.clone())));
    } else {
        clients.push(tokio::spawn(fleet.clone().trouble(until)));
    }
    let quiet = until + watcher::KNOWN_WITHIN + Duration::from_secs(15);
    let watching = tokio::spawn(watcher::watch(fleet.clone(), quiet));
    for client in clients {
        if client.await.is_err() {
            fleet.world.store.problem("a client panicked".into());
        }
    }
    sleep(Duration::from_secs(30)).await;
    idle(&fleet).await;
    watcher::shared(&fleet);
    tokio::time::sleep_until(quiet).await;
    if watching.await.is_err() {
        fleet.world.store.problem("the watcher panicked".into());
    }
    auditor::audit(&fleet)
}

/// Nobody asks for anything, so hardly anything is asked of the store.
async fn idle(fleet: &Fleet) {
    const LOOK_FOR_S: u64 = 10;
    let before: Vec<_> = fleet.servers().into_iter().map(|server| (server.link.calls(), server)).collect();
    sleep(Duration::from_secs(LOOK_FOR_S)).await;
    for (calls, server) in before {
        let (number, asked) = (server.number, (server.link.calls() - calls) / LOOK_FOR_S);
        if asked > IDLE_CALLS_MAX {
            fleet.world.store.problem(format!("server {number} asks {asked} times a second for nothing"));
        } else if server.link.is_worn_out() {
            fleet.world.store.problem(format!("server {number} asked {} times for nothing", server.link.calls()));
        }
    }
}

/// The outcome of what never waits.
fn now<T>(call: impl Future<Output = T>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("memory never waits"),
    }
}
