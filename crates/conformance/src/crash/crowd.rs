//! One fault, and many callers.

use std::sync::Arc;

use tally_core::rows::Key;
use tally_engine::clock::ManualClock;
use tally_engine::faulty::{Fault, Faulty};
use tokio::task::JoinSet;

use crate::EngineFactory;
use crate::auditor::assert_sound;
use crate::running::Running;
use crate::sample::{catalog, relate, unrelate};
use crate::stand::Stand;
use crate::universe::Universe;

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

pub(super) async fn refused_while_many_are_waiting<F: EngineFactory>(stand: Stand<F>) {
    while_many_are_waiting(stand, Fault::Before).await;
}

pub(super) async fn answer_lost_while_many_are_waiting<F: EngineFactory>(stand: Stand<F>) {
    while_many_are_waiting(stand, Fault::After).await;
}
