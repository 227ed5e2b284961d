//! Runs seeds, and says which of them found something.

use std::process::ExitCode;

use clap::Parser;
use tally_simulator::{Flaw, run};

/// Simulates several servers on one store, from a seed.
#[derive(Parser)]
struct Args {
    /// How many seeds to run.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Runs this one alone, and prints all that it finds.
    #[arg(long)]
    seed: Option<u64>,
    /// Does this wrong on purpose.
    #[arg(long, value_enum, default_value_t = Flaw::None)]
    flaw: Flaw,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let seeds = match args.seed {
        Some(seed) => seed..seed + 1,
        None => args.from..args.from + args.seeds,
    };
    let mut failed = 0_u64;
    for seed in seeds {
        let outcome = run(seed, args.flaw);
        if let Some(first) = outcome.problems.first() {
            failed += 1;
            println!("seed {seed}: {} problems; the first: {first}", outcome.problems.len());
            if args.seed.is_some() {
                outcome.problems.iter().skip(1).for_each(|problem| println!("  {problem}"));
            }
        }
    }
    println!("{failed} seeds found something");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
