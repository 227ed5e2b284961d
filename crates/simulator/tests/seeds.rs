//! So many seeds as there is time for; more with `cargo xtask simulate --seeds N`.

use tally_simulator::{Flaw, run};

/// Seeds of each of these tests; they run side by side.
const SEEDS: u64 = 340;

fn all_is_well(from: u64) {
    for seed in from..from + SEEDS {
        let problems = run(seed, Flaw::None).problems;
        assert!(
            problems.is_empty(),
            "seed {seed}, to be run again with `cargo xtask simulate --seed {seed}`: {problems:#?}"
        );
    }
}

#[test]
fn all_is_well_in_the_first_seeds() {
    all_is_well(0);
}

#[test]
fn all_is_well_in_the_next_seeds() {
    all_is_well(SEEDS);
}

#[test]
fn all_is_well_in_the_last_seeds() {
    all_is_well(2 * SEEDS);
}

#[test]
fn a_seed_is_the_same_run_every_time() {
    for seed in 0..20 {
        assert_eq!(run(seed, Flaw::None), run(seed, Flaw::None), "seed {seed}");
    }
}
