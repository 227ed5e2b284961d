//! A server that stops anywhere, and two that go on.

use std::sync::Arc;

use tally_core::Command;
use tally_core::command::Forget;
use tally_engine::faulty::Fault;
use tokio::task::JoinSet;

use super::line::Break;
use super::recorder::Recorder;
use super::servers::{Clocks, SERVERS, Servers};
use crate::EngineFactory;
use crate::auditor::edges;
use crate::random::Random;
use crate::sample::{batch, call, relate, subject};
use crate::stand::Stand;
use crate::sweeper::Sweeper;
use crate::universe::Universe;

/// The server that breaks.
const LAST: usize = SERVERS - 1;
const GONE_EDGES: usize = 3;

/// A history with a break in it, and a job that the broken server begins. Says whether it came to it.
async fn breaks<F: EngineFactory>(stand: Stand<F>, at: Break) -> bool {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let universe = Universe::new(&["s0", "s1", "gone"], &["post:0", "post:1", "post:2"], &["like", "reaction"]);
    let tried = Universe { subjects: ["s0", "s1"].map(subject).to_vec(), ..universe.clone() };
    let likes = ["post:0", "post:1", "post:2"].map(|to| relate("like", to, "gone"));
    servers.run(0, batch(likes)).await;
    let recorder = Arc::new(Recorder::default());
    servers.all[LAST].line.break_after(at);
    let mut tasks = JoinSet::new();
    for task in 0..2 * SERVERS {
        let (runner, line) = (servers.runner(task), servers.all[task % SERVERS].line.clone());
        let (recorder, tried) = (recorder.clone(), tried.clone());
        tasks.spawn(async move {
            let mut random = Random(at.steps * 10 + task as u64);
            for _ in 0..20 {
                let known = recorder.anything(&mut random, &tried, &runner, &*line).await;
                assert!(known || task % SERVERS == LAST, "the others go on");
            }
        });
    }
    let broken = &servers.all[LAST];
    let forgotten = broken.running.runner.apply(call(Command::from(Forget { subject: subject("gone") }))).await;
    // As far as it gets.
    let _ = Sweeper { edges: 1, ..Sweeper::ALL }.run(&servers.stand, &broken.engine, &broken.running).await;
    tasks.join_all().await;
    let has_broken = broken.line.is_broken();

    servers.sweep(0, Sweeper::ALL).await;
    for key in tried.edges() {
        recorder.read(&**servers.engine(1), &key).await;
    }
    recorder.assert_linearizable();
    let dump = servers.stop(&universe).await;
    let left = edges(&dump).filter(|(key, _)| key.subject.as_str() == "gone").count();
    assert!(left == 0 || left == GONE_EDGES, "{left} of {GONE_EDGES} are left: a job is all or nothing in the end");
    assert!(left == 0 || forgotten.is_err(), "it was answered, and {left} edges are left");
    has_broken
}

pub(super) async fn a_server_that_stops_halfway_leaves_no_harm<F: EngineFactory>(stand: Stand<F>) {
    let mut broken = 0;
    for round in 0..10 {
        let fault = if round % 2 == 0 { Fault::Before } else { Fault::After };
        // Half of the time it ends there, and half of the time it is back at once.
        let at = Break { steps: round * 2 + Random(round).next() % 5, fault, for_good: round % 4 < 2 };
        broken += usize::from(breaks(stand.another(), at).await);
    }
    assert!(broken > 6, "only {broken} lines broke");
}
