//! The `tally` binary.

use std::process::ExitCode;

use clap::Parser;
use tally_server::cli::{self, Cli};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run(Cli::parse())
}
