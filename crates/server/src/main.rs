//! The `tally` binary.

use std::process::ExitCode;

use clap::Parser;
use tally_server::cli::{self, Cli};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Whatever is written here is people's data: for this user alone, also where a library creates the file.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    cli::run(Cli::parse())
}
