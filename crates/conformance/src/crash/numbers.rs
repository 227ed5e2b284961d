//! A fault at each step while numbers are taken, and a caller that tries again.

use std::sync::Arc;

use tally_core::rows::Seq;
use tally_core::view::Wants;
use tally_engine::faulty::{Fault, Faulty};
use tally_engine::{CommitError, Engine, OrderFrom, Range};

use crate::EngineFactory;
use crate::joins::{Joins, join, queue_of, queue_order, stands_at, ticket_key};
use crate::stand::Stand;

const WHO: [[&str; 2]; 4] = [["ann", "bob"], ["eve", "ann"], ["dan", "fay"], ["gus", "hal"]];

/// The number and the position of each.
async fn positions<E: Engine>(engine: &E, who: &[&str]) -> Result<(Vec<u64>, Vec<u64>), CommitError> {
    let joining: Vec<(&str, &str)> = who.iter().map(|who| ("sale", *who)).collect();
    let mut joins = Joins::new(engine, &joining).await?;
    joins.show(engine, &[]).await?;
    joins.commit_told(engine).await
}

/// All of so many tickets stand in the queue, and nobody else does.
async fn assert_stand<E: Engine>(engine: &E, last: u64) {
    let ranks = (1..=last + 2).map(|seq| stands_at("sale", Seq::Given(seq))).collect();
    let found = engine.load(&Wants { ranks, ..Wants::default() }).await.expect("a load works").ranks;
    assert_eq!(found, (0..=last).chain([last]).collect::<Vec<u64>>());
    let range = Range::Order { order: queue_order("sale"), from: OrderFrom::Rank(0) };
    let page = engine.scan(&range, 100).await.expect("a scan works").items;
    let keys: Vec<_> = page.into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, (1..=last).map(|seq| ticket_key("sale", Seq::Given(seq))).collect::<Vec<_>>());
}

/// Says whether it came to the fault.
async fn fails_at<F: EngineFactory>(stand: &Stand<F>, step: u32, fault: Fault) -> bool {
    let engine = stand.open().await;
    let faulty = Arc::new(Faulty::new(engine.clone(), step, fault));
    let mut answered: Vec<(u64, &str)> = Vec::new();
    for who in WHO {
        let numbers = loop {
            match positions(&*faulty, &who).await {
                Ok((numbers, ranks)) => {
                    // Nobody leaves: however often it was tried, so many are before it.
                    let before: Vec<u64> = numbers.iter().map(|number| number - 1).collect();
                    assert_eq!(ranks, before, "{fault:?} at step {step}");
                    break numbers;
                }
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
    assert_stand(&*engine, who.len() as u64).await;
    assert_eq!(join(&*engine, &[("sale", "ida")]).await, Ok(vec![8]), "what was answered is not given again");
    has_failed
}

async fn at_every_step<F: EngineFactory>(stand: Stand<F>, fault: Fault) {
    let mut step = 0;
    while fails_at(&stand.another(), step, fault).await {
        step += 1;
    }
    assert_eq!(step, 16, "two loads, a commit and a settling for each of four");
}

pub(super) async fn numbers_when_a_step_is_refused<F: EngineFactory>(stand: Stand<F>) {
    at_every_step(stand, Fault::Before).await;
}

pub(super) async fn numbers_when_an_answer_is_lost<F: EngineFactory>(stand: Stand<F>) {
    at_every_step(stand, Fault::After).await;
}
