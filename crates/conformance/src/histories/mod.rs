//! Random histories: in lockstep with the oracle, and concurrently through the runner.

mod concurrent;
mod generate;
mod lockstep;

use crate::random;
use crate::stand::Stand;
use crate::{Case, EngineFactory, cases};

/// Every case.
pub(crate) fn cases<F: EngineFactory>() -> Vec<Case<F>> {
    use crate::histories as seeds;
    cases![
        seeds: lockstep_0, lockstep_1, lockstep_2, lockstep_3, short_lockstep;
        concurrent:
            many_tasks_on_one_runner_add_up,
            many_tasks_on_two_runners_add_up,
            pages_neither_skip_nor_repeat,
            a_limit_holds_at_every_moment;
    ]
}

/// Long histories of these seeds, a few for each case so that they run side by side.
async fn long<F: EngineFactory>(stand: Stand<F>, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        lockstep::run(&stand.another(), seed, 330).await;
    }
}

async fn lockstep_0<F: EngineFactory>(stand: Stand<F>) {
    long(stand, 0..3).await;
}

async fn lockstep_1<F: EngineFactory>(stand: Stand<F>) {
    long(stand, 100..103).await;
}

async fn lockstep_2<F: EngineFactory>(stand: Stand<F>) {
    long(stand, 200..203).await;
}

async fn lockstep_3<F: EngineFactory>(stand: Stand<F>) {
    long(stand, 300..303).await;
}

/// Many short ones meet more catalogs, and compare the whole store sooner.
async fn short_lockstep<F: EngineFactory>(stand: Stand<F>) {
    for seed in 1_000..1_025 {
        lockstep::run(&stand.another(), seed, 30).await;
    }
}
