//! The `tally` binary.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tally_server::config::{self, ServeArgs, Settings};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Interactions that always add up: likes, bookmarks, favourites, reactions.
#[derive(Parser)]
#[command(name = "tally", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server; the same as no command at all
    Serve(ServeArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        None => run(&ServeArgs::default()),
        Some(Command::Serve(args)) => run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tally: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let settings: Settings = config::load(args)?;
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(tally_server::serve::serve(settings, |_| {}, async {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).expect("signals");
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
    }))
}
