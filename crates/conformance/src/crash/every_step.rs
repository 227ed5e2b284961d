//! One fault, at each step in turn, and one caller.

use std::sync::Arc;

use tally_engine::clock::ManualClock;
use tally_engine::faulty::{Fault, Faulty};

use super::world::{World, Worlds, act, canonical, history, universe};
use crate::EngineFactory;
use crate::auditor::assert_sound;
use crate::running::Running;
use crate::sample::catalog;
use crate::stand::Stand;
use crate::sweeper::Sweeper;

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
        assert!(Sweeper::ALL.run(stand, &engine, &running).await.expect("the store works again"));
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

async fn at_every_step<F: EngineFactory>(stand: Stand<F>, fault: Fault) {
    let worlds = Worlds::new().await;
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

pub(super) async fn refused_at_every_step<F: EngineFactory>(stand: Stand<F>) {
    at_every_step(stand, Fault::Before).await;
}

pub(super) async fn answer_lost_at_every_step<F: EngineFactory>(stand: Stand<F>) {
    at_every_step(stand, Fault::After).await;
}
