//! The project's own commands: `cargo xtask test`, `tidy`, `bench`, `simulate`, `codegen`, `fuzz`, `deny`.
//!
//! Kept to `anyhow`, `clap` and std, so that it builds in seconds on a fresh clone: everything
//! heavy is another program that it starts.

mod codegen;
mod contract;
mod deny;
mod fuzz;
mod install;
mod shell;
mod steps;
mod test;
mod tidy;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Tally's development commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything that must pass before a change lands: format, lints, tidy, tests, the HTTP contract.
    Test,
    /// The rules of the house that the compiler does not know.
    Tidy,
    /// Run a benchmark next to its peers: likes, postgres, redis, feed, lists, rooms, restart. More with `bench -- --help`.
    Bench {
        /// The benchmark and its options, as `tally-bench` takes them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Several servers on a store that is made up, from seeds; with `--seed N` one of them again..
    Simulate {
        /// As `simulate` takes them: `--seeds`, `--from`, `--seed`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Rewrite the files that are generated from the code.
    Codegen,
    /// Fuzz every target for a while, on the kept corpus.
    Fuzz {
        /// How long each target runs.
        #[arg(long, default_value_t = 30)]
        seconds: u32,
    },
    /// Advisories, licences and duplicate crates, by cargo-deny.
    Deny,
    /// Try the running server against its own OpenAPI document (a part of `test`).
    Contract,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line: what failed stands above it, and a backtrace of this program helps nobody.
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<()> {
    std::env::set_current_dir(shell::workspace_root())?;
    match args.task {
        Task::Test => test::run(),
        Task::Tidy => tidy::run(),
        Task::Bench { args } => {
            shell::run(shell::cargo().args(["run", "--release", "-p", "tally-bench", "--"]).args(args))
        }
        Task::Simulate { args } => {
            let simulate = ["run", "--release", "-p", "tally-simulator", "--bin", "simulate", "--"];
            shell::run(shell::cargo().args(simulate).args(args))
        }
        Task::Codegen => codegen::write_all(),
        Task::Fuzz { seconds } => fuzz::run(seconds),
        Task::Deny => deny::run(),
        Task::Contract => contract::run(),
    }
}
