//! One history on the engine and on the oracle: every answer, every page and the whole store are
//! compared. A history that fails is made as short as it can be before it is shown.

use std::fmt::Write;

use tally_core::Catalog;
use tally_core::rows::RowKind;
use tally_core::time::Timestamp;
use tally_engine::memory::Memory;
use tally_engine::{Engine, Range};

use super::generate::{History, history};
use crate::driver::{Step, apply};
use crate::stand::Stand;
use crate::universe::{Dump, Universe};
use crate::{EngineFactory, auditor, walk};

/// The whole store is compared after so many steps.
const COMPARE_EVERY: usize = 40;
/// It is closed and opened again after so many.
const REOPEN_EVERY: usize = 110;
/// So often is a failing history run again to make it shorter.
const SHRINK_RUNS_MAX: usize = 300;

/// Where and how the two disagree.
struct Mismatch {
    step: usize,
    what: String,
}

/// Runs the history of a seed.
pub(super) async fn run<F: EngineFactory>(stand: &Stand<F>, seed: u64, length: usize) {
    let History { catalog, universe, steps } = history(seed, length);
    if let Err(mismatch) = compare(stand, &catalog, &universe, &steps).await {
        let (steps, what) = shrink(stand, &catalog, &universe, &steps[..=mismatch.step], mismatch.what).await;
        let mut shown = String::new();
        for step in &steps {
            let _ = writeln!(shown, "  {:?} id {} {:?} {:?}", step.stamp, step.id, step.call.command, step.call.once);
        }
        panic!("seed {seed}: {what}\nafter these {} steps:\n{shown}with {catalog:#?}", steps.len());
    }
}

/// Takes steps out, in ever smaller pieces, as long as what is left still fails.
async fn shrink<F: EngineFactory>(
    stand: &Stand<F>,
    catalog: &Catalog,
    universe: &Universe,
    steps: &[Step],
    what: String,
) -> (Vec<Step>, String) {
    let (mut steps, mut what) = (steps.to_vec(), what);
    let mut piece = steps.len().div_ceil(2);
    let mut runs = 0;
    while piece > 0 && runs < SHRINK_RUNS_MAX {
        let mut at = 0;
        while at < steps.len() && runs < SHRINK_RUNS_MAX {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + piece).min(steps.len()));
            runs += 1;
            match compare(&stand.another(), catalog, universe, &fewer).await {
                Err(mismatch) => {
                    fewer.truncate(mismatch.step + 1);
                    (steps, what) = (fewer, mismatch.what);
                }
                Ok(()) => at += piece,
            }
        }
        piece /= 2;
    }
    (steps, what)
}

async fn compare<F: EngineFactory>(
    stand: &Stand<F>,
    catalog: &Catalog,
    universe: &Universe,
    steps: &[Step],
) -> Result<(), Mismatch> {
    let mut engine = stand.open().await;
    let oracle = Memory::default();
    for (number, step) in steps.iter().enumerate() {
        let mismatch = |what| Mismatch { step: number, what };
        let expected = apply(&oracle, catalog, step).await;
        let found = apply(&*engine, catalog, step).await;
        if found != expected {
            return Err(mismatch(format!("the answer is {found:?}, and should be {expected:?}")));
        }
        if number % REOPEN_EVERY == REOPEN_EVERY - 1 {
            engine = stand.reopen(engine).await;
        }
        if number % COMPARE_EVERY == COMPARE_EVERY - 1 || number + 1 == steps.len() {
            stand.drain(&engine).await;
            same_store(&*engine, &oracle, universe, number).await.map_err(mismatch)?;
        }
    }
    Ok(())
}

/// Rows, totals, lists in both directions, the other ranges, and what an audit says.
async fn same_store<E: Engine>(engine: &E, oracle: &Memory, universe: &Universe, number: usize) -> Result<(), String> {
    let (rows, totals) = oracle.dump();
    let expected = Dump { rows, totals };
    let found = universe.dump(engine).await;
    same("the store", &found, &expected)?;
    let limit = 1 + number % 5;
    for list in universe.lists() {
        let expected = walk::all(oracle, &list, limit).await;
        let found = walk::all(engine, &list, limit).await;
        same(&format!("{list:?} in pages of {limit}"), &found, &expected)?;
    }
    let due = [0, 1_000_000, 1_004_000, u64::MAX].map(|at| Range::due(RowKind::Replay, Timestamp(at)));
    for range in [Range::OPEN_JOBS, Range::API_KEYS].into_iter().chain(due) {
        for limit in [1, 2, 100] {
            let expected = oracle.scan(&range, limit).await.expect("the oracle answers");
            let found = engine.scan(&range, limit).await.map_err(|error| error.to_string())?;
            same(&format!("{range:?}"), &(found.items, found.more), &(expected.items, expected.more))?;
        }
    }
    same("the audit", &auditor::findings(engine).await, &auditor::findings(oracle).await)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is\n{found:#?}\nand should be\n{expected:#?}")) }
}
