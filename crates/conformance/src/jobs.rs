//! Long work that is stopped between any two of its steps goes on as if nothing had been.

use std::sync::Arc;

use tally_core::Command;
use tally_core::command::{DeleteObject, Forget, Restore, Suspend};
use tally_core::reply::Reply;
use tally_core::rows::{Edge, EdgeKey, JobId, Key, Row};
use tally_core::view::Wants;
use tally_engine::Engine;
use tally_engine::clock::ManualClock;

use crate::auditor::{assert_sound, edges};
use crate::running::Running;
use crate::sample::{batch, catalog, object, put, react, relate, subject};
use crate::stand::Stand;
use crate::sweeper::Sweeper;
use crate::universe::Universe;
use crate::{Case, EngineFactory, cases};

/// Every case.
pub(crate) fn cases<F: EngineFactory>() -> Vec<Case<F>> {
    use crate::jobs as stopped;
    cases![
        stopped:
            forgetting_goes_on_after_a_stop,
            deleting_goes_on_after_a_stop,
            hiding_goes_on_after_a_stop,
            showing_goes_on_after_a_stop,
            forgetting_what_is_half_hidden_goes_on_after_a_stop,
            a_restore_overtakes_a_hiding_wherever_it_is,
            steps_that_are_sent_twice_count_once,
    ]
}

/// A job: what leads up to it, how it begins, and which edges it changes.
struct Plan {
    /// Done before it, each to its end.
    before: Vec<Command>,
    /// Begun before it, and left after so many steps.
    half_done: Option<(Command, usize)>,
    /// How it begins.
    begin: Command,
    /// What becomes of an edge that was there: itself, another, or nothing.
    becomes: fn(&EdgeKey, Edge) -> Option<Edge>,
}

fn universe() -> Universe {
    let objects = ["post:0", "post:1", "post:2", "post:3", "post:4", "post:later"];
    Universe::new(&["alice", "bob", "later"], &objects, &["like", "shelf", "reaction", "mark"])
}

async fn fill(running: &Running) {
    running.run(put("post:1", "open")).await;
    for n in 0..5 {
        let to = format!("post:{n}");
        running.run(batch(["alice", "bob"].map(|who| relate("like", &to, who)))).await;
    }
    for (to, who, kind) in [("post:1", "alice", "like"), ("post:2", "alice", "wow"), ("post:1", "bob", "wow")] {
        running.run(react("reaction", to, who, kind)).await;
    }
    running.run(batch([relate("shelf", "post:1", "alice"), relate("mark", "post:1", "alice")])).await;
}

/// Runs the plan once for every place where it can be stopped, until a run gets to its end.
async fn at_every_stop<F: EngineFactory>(stand: &Stand<F>, plan: &Plan, times: usize) {
    for steps in 0.. {
        let stand = stand.another();
        if stopped_after(&stand, plan, Sweeper { edges: 2, steps, times }).await {
            assert!(steps > 3, "a job of {steps} steps proves little");
            return;
        }
    }
}

/// Says whether the job had ended before it was stopped.
async fn stopped_after<F: EngineFactory>(stand: &Stand<F>, plan: &Plan, sweep: Sweeper) -> bool {
    let (engine, catalog, universe) = (stand.open().await, catalog(), universe());
    let running = Running::start(&engine, &catalog, ManualClock::at(1_000)).await;
    fill(&running).await;
    for command in &plan.before {
        running.run(command.clone()).await;
        assert!(Sweeper::ALL.run(stand, &engine, &running).await.expect("the store works"));
    }
    let original = universe.dump(&*engine).await;
    if let Some((command, steps)) = &plan.half_done {
        running.run(command.clone()).await;
        Sweeper { steps: *steps, ..sweep }.run(stand, &engine, &running).await.expect("the store works");
    }
    let before = universe.dump(&*engine).await;
    let Reply::Job(job) = running.run(plan.begin.clone()).await else { panic!("it begins a job") };
    // What comes later the job leaves alone. Only a subject that is suspended cannot go on.
    let mut later = 0;
    for command in [relate("like", "post:later", "alice"), relate("like", "post:1", "later")] {
        later += usize::from(running.apply(command).await.expect("the store works").reply.is_ok());
    }
    let ended = sweep.run(stand, &engine, &running).await.expect("the store works");
    running.stop().await;
    let engine = stand.reopen(engine).await;
    assert_counts(stand, &engine, &universe).await;

    let running = Running::start(&engine, &catalog, ManualClock::at(500)).await;
    assert!(Sweeper { steps: usize::MAX, ..sweep }.run(stand, &engine, &running).await.expect("the store works"));
    running.stop().await;
    assert_counts(stand, &engine, &universe).await;
    let dump = universe.dump(&*engine).await;
    let is_later = |key: &EdgeKey| key.subject.as_str() == "later" || key.object.as_str() == "post:later";
    assert_eq!(edges(&dump).filter(|(key, _)| is_later(key)).count(), later, "what came later stays");
    for (key, edge) in edges(&original) {
        let expected = (plan.becomes)(key, edge.clone()).map(Row::Edge);
        assert_eq!(dump.rows.get(&Key::Edge(key.clone())), expected.as_ref(), "{key:?}");
    }
    let changed = edges(&before).filter(|(key, edge)| (plan.becomes)(key, (*edge).clone()).as_ref() != Some(edge));
    assert_eq!(finished(&engine, &job.job).await, changed.count() as u64, "the job knows how many it changed");
    ended
}

/// Counts are right at every stop, not only at the end.
async fn assert_counts<F: EngineFactory>(stand: &Stand<F>, engine: &Arc<F::Engine>, universe: &Universe) {
    stand.drain(engine).await;
    assert_sound(&**engine, universe).await;
}

/// How many edges an ended job changed.
pub(crate) async fn finished<E: Engine>(engine: &Arc<E>, job: &str) -> u64 {
    let id = JobId::parse(job).expect("an id that was answered can be read");
    let wants = Wants::rows(vec![Key::Job(id)]);
    match engine.load(&wants).await.expect("a load works").rows.remove(0) {
        Some(Row::Job(job)) if job.finished_at.is_some() => job.edges,
        other => panic!("{other:?} is not a job that has ended"),
    }
}

fn is_alice(key: &EdgeKey) -> bool {
    key.subject.as_str() == "alice"
}

fn forget() -> Plan {
    let begin = Command::from(Forget { subject: subject("alice") });
    let becomes = |key: &EdgeKey, edge: Edge| (!is_alice(key)).then_some(edge);
    Plan { before: Vec::new(), half_done: None, begin, becomes }
}

fn suspend() -> Command {
    Command::from(Suspend { subject: subject("alice") })
}

async fn forgetting_goes_on_after_a_stop<F: EngineFactory>(stand: Stand<F>) {
    at_every_stop(&stand, &forget(), 1).await;
}

async fn deleting_goes_on_after_a_stop<F: EngineFactory>(stand: Stand<F>) {
    let begin = Command::from(DeleteObject { object: object("post:1") });
    let becomes = |key: &EdgeKey, edge: Edge| (key.object.as_str() != "post:1").then_some(edge);
    at_every_stop(&stand, &Plan { before: Vec::new(), half_done: None, begin, becomes }, 1).await;
}

async fn hiding_goes_on_after_a_stop<F: EngineFactory>(stand: Stand<F>) {
    let becomes = |key: &EdgeKey, edge: Edge| Some(Edge { hidden: is_alice(key), ..edge });
    at_every_stop(&stand, &Plan { before: Vec::new(), half_done: None, begin: suspend(), becomes }, 1).await;
}

async fn showing_goes_on_after_a_stop<F: EngineFactory>(stand: Stand<F>) {
    let begin = Command::from(Restore { subject: subject("alice") });
    let becomes = |_: &EdgeKey, edge: Edge| Some(Edge { hidden: false, ..edge });
    at_every_stop(&stand, &Plan { before: vec![suspend()], half_done: None, begin, becomes }, 1).await;
}

async fn forgetting_what_is_half_hidden_goes_on_after_a_stop<F: EngineFactory>(stand: Stand<F>) {
    let plan = Plan { half_done: Some((suspend(), 2)), ..forget() };
    at_every_stop(&stand, &plan, 1).await;
}

/// Hidden as far as it went, and all of it comes back.
async fn a_restore_overtakes_a_hiding_wherever_it_is<F: EngineFactory>(stand: Stand<F>) {
    for steps in 1..4 {
        let begin = Command::from(Restore { subject: subject("alice") });
        let becomes = |_: &EdgeKey, edge: Edge| Some(Edge { hidden: false, ..edge });
        let plan = Plan { before: Vec::new(), half_done: Some((suspend(), steps)), begin, becomes };
        for cut in 0..3 {
            stopped_after(&stand.another(), &plan, Sweeper { edges: 2, steps: cut, times: 1 }).await;
        }
    }
}

async fn steps_that_are_sent_twice_count_once<F: EngineFactory>(stand: Stand<F>) {
    at_every_stop(&stand, &forget(), 2).await;
}
