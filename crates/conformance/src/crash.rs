//! A failure at any step of a history: what was answered is there, and what was not is there as a
//! whole or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use tally_core::command::{Call, Once, Reply};
use tally_core::rows::{Edge, JobId, Key, Row, Subject};
use tally_core::time::Stamp;
use tally_core::{Command, Refusal};
use tally_engine::Failure;
use tally_engine::clock::ManualClock;
use tally_engine::faulty::{Fault, Faulty};
use tally_engine::memory::Memory;
use tokio::task::JoinSet;

use crate::auditor::{assert_sound, edges};
use crate::running::Running;
use crate::sample::{batch, catalog, name, object, put, react, relate, replay_key, subject, unrelate};
use crate::stand::Stand;
use crate::sweeper::Sweep;
use crate::universe::{Dump, Universe};
use crate::{Case, EngineFactory, cases};

/// Every case.
pub(crate) fn cases<F: EngineFactory>() -> Vec<Case<F>> {
    use crate::crash as faults;
    cases![
        faults:
            refused_at_every_step,
            answer_lost_at_every_step,
            refused_while_many_are_waiting,
            answer_lost_while_many_are_waiting,
    ]
}

/// One act of the history.
enum Act {
    Run(Command),
    /// With an idempotency key.
    Once(Command),
    /// Every open job, as far as it gets.
    Sweep,
}

fn history() -> Vec<Act> {
    use Act::{Once, Run};
    let toggle = || {
        let (relation, object, subject) = (name("like"), object("post:2"), subject("cid"));
        Once(Command::Toggle { relation, object, subject, kind: None, meta: None })
    };
    vec![
        Run(put("post:1", "open")),
        Run(relate("like", "post:1", "ann")),
        Run(batch([relate("like", "post:1", "bob"), relate("mark", "post:1", "bob"), relate("pin", "post:2", "bob")])),
        Run(react("reaction", "post:2", "ann", "like")),
        Run(react("reaction", "post:2", "ann", "wow")),
        toggle(),
        toggle(),
        Run(Command::Suspend { subject: subject("ann") }),
        Act::Sweep,
        Run(Command::DeleteObject { object: object("post:1") }),
        Run(relate("pin", "post:3", "cid")),
        Act::Sweep,
        Run(unrelate("like", "post:2", "cid")),
        Run(Command::Restore { subject: subject("ann") }),
        Run(Command::Forget { subject: subject("bob") }),
        Act::Sweep,
        Run(relate("like", "post:2", "ann")),
    ]
}

fn universe() -> Universe {
    let objects = ["post:1", "post:2", "post:3"];
    let relations = ["like", "mark", "pin", "reaction"];
    Universe { replays: vec![replay_key("app", "k")], ..Universe::new(&["ann", "bob", "cid"], &objects, &relations) }
}

/// What an act was answered, a refusal too: without one act, a later one may be refused. A sweep has
/// no answer.
type Answer = Option<Result<Reply, Refusal>>;

async fn act<F: EngineFactory>(
    stand: &Stand<F>,
    engine: &F::Engine,
    running: &Running,
    act: Act,
) -> Result<Answer, Failure> {
    let call = match act {
        Act::Run(command) => crate::sample::call(command),
        Act::Once(command) => {
            let once = Once { key: replay_key("app", "k"), fields: Arc::new(vec![("op".into(), 1)]) };
            Call { once: Some(once), ..crate::sample::call(command) }
        }
        Act::Sweep => return Sweep { edges: 2, ..Sweep::ALL }.run(stand, engine, running).await.map(|_| None),
    };
    Ok(Some(running.runner.apply(call).await?.reply.map(blank)))
}

/// Leaves out what differs from run to run.
fn blank(reply: Reply) -> Reply {
    match reply {
        Reply::Job(job) => Reply::Job(tally_core::command::JobReply { job: String::new(), ..job }),
        other => other,
    }
}

/// A store without what differs from run to run: stamps become places in one order.
fn canonical(mut dump: Dump) -> Dump {
    let stamps: BTreeSet<Stamp> = edges(&dump).map(|(_, edge)| edge.created).collect();
    for row in dump.rows.values_mut() {
        match row {
            Row::Edge(Edge { created, .. }) => *created = Stamp(stamps.range(..*created).count() as u64),
            Row::Subject(Subject { job, .. }) => *job = JobId(0),
            _ => {}
        }
    }
    dump
}

/// What the history comes to: the answer of every act that is in it, and the store in the end.
type World = (Vec<Option<Answer>>, Dump);

/// The history on the oracle, with one act left out or none, and its jobs finished.
async fn world(without: Option<usize>) -> World {
    struct Oracle;
    impl EngineFactory for Oracle {
        type Engine = Memory;
        type Place = ();
        fn place(&self) {}
        async fn open(&self, _place: &()) -> Memory {
            Memory::default()
        }
        fn reopens(&self) -> bool {
            false
        }
    }
    let stand = Stand::new(Arc::new(Oracle));
    let engine = stand.open().await;
    let running = Running::start(&engine, &catalog(), ManualClock::at(1_000)).await;
    let mut answers = Vec::new();
    for (number, one) in history().into_iter().enumerate() {
        let answer = if without == Some(number) { None } else { act(&stand, &engine, &running, one).await.ok() };
        answers.push(answer);
    }
    Sweep::ALL.run(&stand, &engine, &running).await.expect("the oracle works");
    running.stop().await;
    (answers, canonical(universe().dump(&*engine).await))
}

/// Runs the history with a fault at a step. Says whether it came that far.
async fn fails_at<F: EngineFactory>(stand: &Stand<F>, worlds: &Worlds, step: u32, fault: Fault) -> bool {
    let engine = stand.open().await;
    let faulty = Arc::new(Faulty::new(engine.clone(), step, fault));
    let running = Running::start(&faulty, &catalog(), ManualClock::at(1_000)).await;
    let mut answers = Vec::new();
    for one in history() {
        answers.push(act(stand, &engine, &running, one).await);
    }
    running.stop().await;
    let has_failed = faulty.has_failed();
    drop(faulty);
    let failed: Vec<usize> = (0..answers.len()).filter(|number| answers[*number].is_err()).collect();
    assert_eq!(failed.len(), usize::from(has_failed), "one fault harms one act, and no other");

    // Once as the process left it, and once as a new one finds it.
    let mut engine = engine;
    for round in 0..2 {
        if round > 0 {
            engine = stand.reopen(engine).await;
        }
        let running = Running::start(&engine, &catalog(), ManualClock::at(1_000)).await;
        assert!(Sweep::ALL.run(stand, &engine, &running).await.expect("the store works again"));
        running.stop().await;
        stand.drain(&engine).await;
        assert_sound(&*engine, &universe()).await;
        let found = canonical(universe().dump(&*engine).await);
        let possible: Vec<&World> =
            [&worlds.whole].into_iter().chain(failed.iter().map(|act| &worlds.without[*act])).collect();
        let fits = |(expected, dump): &&World| {
            let answered = answers.iter().zip(expected).all(|(answer, expected)| match (answer, expected) {
                (Ok(answer), Some(expected)) => answer == expected,
                (Ok(_), None) => false,
                (Err(_), _) => true,
            });
            answered && found == *dump
        };
        assert!(
            possible.iter().any(fits),
            "{fault:?} at step {step}: neither with nor without act {failed:?}\nanswers {answers:#?}\nfound {found:#?}\npossible {possible:#?}"
        );
    }
    has_failed
}

/// Every world that one fault can lead to.
struct Worlds {
    whole: World,
    without: Vec<World>,
}

async fn at_every_step<F: EngineFactory>(stand: Stand<F>, fault: Fault) {
    let mut worlds = Worlds { whole: world(None).await, without: Vec::new() };
    for act in 0..history().len() {
        worlds.without.push(world(Some(act)).await);
    }
    // Most of the time is spent waiting for a disk, so several wait at once.
    let lane = |first: u32| {
        let (stand, worlds) = (&stand, &worlds);
        async move {
            let mut step = first;
            while fails_at(&stand.another(), worlds, step, fault).await {
                step += LANES;
            }
            step
        }
    };
    let (a, b, c, d) = tokio::join!(lane(0), lane(1), lane(2), lane(3));
    let steps = a.min(b).min(c).min(d);
    assert!(steps > 50, "a history of {steps} steps proves little");
}

const LANES: u32 = 4;

async fn refused_at_every_step<F: EngineFactory>(stand: Stand<F>) {
    at_every_step(stand, Fault::Before).await;
}

async fn answer_lost_at_every_step<F: EngineFactory>(stand: Stand<F>) {
    at_every_step(stand, Fault::After).await;
}

/// Many callers at once, so that a fault meets batches, and batches that were decided on top of it.
async fn while_many_are_waiting<F: EngineFactory>(stand: Stand<F>, fault: Fault) {
    const CALLERS: usize = 12;
    let subjects: Vec<String> = (0..CALLERS).map(|n| format!("s{n}")).collect();
    let names: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let universe = Universe::new(&names, &["post:1", "post:2", "post:3"], &["like"]);
    let mut faults = 0;
    for step in 0..14 {
        let stand = stand.another();
        let engine = stand.open().await;
        let faulty = Arc::new(Faulty::new(engine.clone(), step, fault));
        let running = Running::start(&faulty, &catalog(), ManualClock::at(1_000)).await;
        let mut callers = JoinSet::new();
        for who in subjects.clone() {
            let runner = running.runner.clone();
            callers.spawn(async move {
                let mut answers = Vec::new();
                for command in [
                    relate("like", "post:1", &who),
                    relate("like", "post:2", &who),
                    unrelate("like", "post:1", &who),
                    relate("like", "post:3", &who),
                ] {
                    answers.push(runner.apply(crate::sample::call(command)).await.is_ok());
                }
                (who, answers)
            });
        }
        let answers: Vec<(String, Vec<bool>)> =
            callers.join_all().await.into_iter().inspect(|(_, answers)| assert_eq!(answers.len(), 4)).collect();
        running.stop().await;
        faults += usize::from(faulty.has_failed());
        drop(faulty);
        let mut engine = engine;
        for round in 0..2 {
            if round > 0 {
                engine = stand.reopen(engine).await;
            }
            stand.drain(&engine).await;
            assert_sound(&*engine, &universe).await;
            let dump = universe.dump(&*engine).await;
            let has =
                |to: &str, who: &str| dump.rows.contains_key(&Key::Edge(crate::sample::edge_key("like", to, who)));
            for (who, answered) in &answers {
                assert!(has("post:2", who) || !answered[1], "{who} was answered, and has no like on post:2");
                assert!(has("post:3", who) || !answered[3], "{who} was answered, and has no like on post:3");
                assert!(!has("post:1", who) || !answered[2], "{who} was answered, and still has a like on post:1");
            }
        }
    }
    assert!(faults > 3, "only {faults} faults happened");
}

async fn refused_while_many_are_waiting<F: EngineFactory>(stand: Stand<F>) {
    while_many_are_waiting(stand, Fault::Before).await;
}

async fn answer_lost_while_many_are_waiting<F: EngineFactory>(stand: Stand<F>) {
    while_many_are_waiting(stand, Fault::After).await;
}
