//! Tally next to its peers: the same work, on the same machine, in the same run.
//!
//! Run through `cargo xtask bench <name>`. Servers are started here, on free loopback ports and in
//! temporary folders, and are gone afterwards; one that was already running is never touched.

mod counting;
mod feed;
mod histogram;
mod http;
mod likes;
mod lists;
mod load;
mod machine;
mod options;
mod peers;
mod progress;
mod report;
mod resp;
mod restart;
mod rooms;
mod rows;
mod scale;
mod store_postgres;
mod store_redis;
mod targets;
mod workload;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use options::Options;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Benchmarks of Tally next to Redis and PostgreSQL.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Likes a second: one per request, many per request, one hot post, repeats.
    Likes {
        #[command(flatten)]
        options: Options,
        /// Compare the cost of an operation at 100k and at 10M edges instead.
        #[arg(long)]
        scale: bool,
    },
    /// A screen of a feed: 50 objects, two relations, viewer's flags.
    Feed(Options),
    /// Counters, unique counts, attendance, boards and limits, each next to its Redis command.
    Counting(Options),
    /// The 50 newest of an object and of a subject.
    Lists(Options),
    /// Likes on the PostgreSQL store: one, two and four servers, by Zipf and on one hot post.
    Postgres(Options),
    /// Likes on the Redis store: one, two and four servers, and on a Cluster, by Zipf and on one hot post.
    Redis(Options),
    /// Waiting rooms: joins with an exact position, a burst, polls and tickets that are followed, next to a queue by hand on Redis.
    Rooms(Options),
    /// Time to be ready again after kill -9 with a full store.
    Restart(Options),
}

fn main() -> ExitCode {
    let outcome =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(anyhow::Error::from).and_then(
            |runtime| {
                let outcome = runtime.block_on(run(Args::parse()));
                // Threads of a row that was given up may still wait for a server that is gone.
                runtime.shutdown_background();
                outcome
            },
        );
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the benchmark, or gives up at Ctrl-C. Either way the servers are dropped, which ends them.
async fn run(args: Args) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let bench = async {
        match args.bench {
            Bench::Likes { options, scale: true } => scale::run(&options).await,
            Bench::Likes { options, scale: false } => likes::run(&options).await,
            Bench::Feed(options) => feed::run(&options).await,
            Bench::Counting(options) => counting::run(&options).await,
            Bench::Lists(options) => lists::run(&options).await,
            Bench::Postgres(options) => store_postgres::run(&options).await,
            Bench::Redis(options) => store_redis::run(&options).await,
            Bench::Rooms(options) => rooms::run(&options).await,
            Bench::Restart(options) => restart::run(&options).await,
        }
    };
    tokio::select! {
        outcome = bench => outcome,
        _ = interrupt.recv() => bail!("interrupted; the servers that it started are stopped"),
        _ = terminate.recv() => bail!("terminated; the servers that it started are stopped"),
    }
}
