//! A fault at each step while numbers are taken, and a caller that tries again.

use std::sync::Arc;

use tally_engine::CommitError;
use tally_engine::faulty::{Fault, Faulty};

use crate::EngineFactory;
use crate::joins::{join, queue_of};
use crate::stand::Stand;

const WHO: [[&str; 2]; 4] = [["ann", "bob"], ["eve", "ann"], ["dan", "fay"], ["gus", "hal"]];

/// Says whether it came to the fault.
async fn fails_at<F: EngineFactory>(stand: &Stand<F>, step: u32, fault: Fault) -> bool {
    let engine = stand.open().await;
    let faulty = Arc::new(Faulty::new(engine.clone(), step, fault));
    let mut answered: Vec<(u64, &str)> = Vec::new();
    for who in WHO {
        let numbers = loop {
            match join(&*faulty, &who.map(|who| ("sale", who))).await {
                Ok(numbers) => break numbers,
                Err(CommitError::Store(error)) => assert!(error.is_transient() && faulty.has_failed(), "{error}"),
                Err(CommitError::Conflict) => panic!("nobody else writes"),
            }
        };
        answered.extend(numbers.into_iter().zip(who));
    }
    let has_failed = faulty.has_failed();
    drop(faulty);
    let engine = stand.reopen(engine).await;
    answered.sort_unstable();
    answered.dedup();
    let (numbers, who): (Vec<u64>, Vec<&str>) = answered.into_iter().unzip();
    assert_eq!(
        numbers,
        (1..=7).collect::<Vec<u64>>(),
        "{fault:?} at step {step}: each number once, and each of them one"
    );
    assert_eq!(queue_of(&*engine, "sale").await, who, "{fault:?} at step {step}");
    assert_eq!(join(&*engine, &[("sale", "ida")]).await, Ok(vec![8]), "what was answered is not given again");
    has_failed
}

async fn at_every_step<F: EngineFactory>(stand: Stand<F>, fault: Fault) {
    let mut step = 0;
    while fails_at(&stand.another(), step, fault).await {
        step += 1;
    }
    assert_eq!(step, 12, "a load, a commit and a settling for each of four");
}

pub(super) async fn numbers_when_a_step_is_refused<F: EngineFactory>(stand: Stand<F>) {
    at_every_step(stand, Fault::Before).await;
}

pub(super) async fn numbers_when_an_answer_is_lost<F: EngineFactory>(stand: Stand<F>) {
    at_every_step(stand, Fault::After).await;
}
