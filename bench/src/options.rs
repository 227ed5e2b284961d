//! What a run can be told.

use crate::load::Load;
use crate::report::Report;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// A system that can be measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum System {
    /// Over HTTP and in process.
    Tally,
    /// In process only.
    InProcess,
    Redis,
    Postgres,
}

/// Options of every benchmark.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// A small preload and 3 s a row: to try things, not to quote figures.
    #[arg(long)]
    quick: bool,
    /// Seconds measured per row.
    #[arg(long)]
    seconds: Option<u64>,
    /// Edges loaded before anything is measured.
    #[arg(long)]
    preload: Option<u32>,
    /// Only this system; may be repeated. Ratios need their peers.
    #[arg(long)]
    only: Vec<System>,
    /// Only rows whose name holds this, such as `single` or `redis.always`; may be repeated.
    #[arg(long)]
    pub(crate) rows: Vec<String>,
    /// Threads of the load generator.
    #[arg(long, default_value_t = 1)]
    client_threads: usize,
    /// The `tally` binary. Without it, the release binary is built first.
    #[arg(long)]
    pub(crate) tally: Option<PathBuf>,
    /// Batches side by side on the Redis store, to try what is best.
    #[arg(long, hide = true)]
    lanes: Option<usize>,
    /// Where JSON, SVG and README.md go. Default: docs/benchmarks, or target/benchmarks when the run
    /// is not a whole one.
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Options {
    pub(crate) fn wants(&self, system: System) -> bool {
        let part_of_tally = system == System::InProcess && self.only.contains(&System::Tally);
        self.only.is_empty() || self.only.contains(&system) || part_of_tally
    }

    /// A report on rows of so many seconds, with what is known about its data.
    pub(crate) fn report(&self, bench: &str, operation: &str, data: &str) -> Report {
        let data = format!("{data}, {} s a row after a warm-up", self.seconds());
        Report::new(bench, operation, data, &self.rows)
    }

    pub(crate) fn is_quick(&self) -> bool {
        self.quick
    }

    /// A store's URL with what is to be tried.
    pub(crate) fn tuned(&self, url: String) -> String {
        self.lanes.map_or(url.clone(), |lanes| format!("{url}?lanes={lanes}"))
    }

    pub(crate) fn preload(&self, whole: u32) -> u32 {
        self.preload.unwrap_or(if self.quick { 100_000 } else { whole })
    }

    pub(crate) fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(if self.quick { 3 } else { 8 })
    }

    /// The load of one row.
    pub(crate) fn load(&self, connections: usize) -> Load {
        let warmup = Duration::from_millis(if self.quick { 500 } else { 1500 });
        let threads = self.client_threads.clamp(1, connections);
        Load { connections, threads, warmup, measured: Duration::from_secs(self.seconds()) }
    }

    /// A partial or quick run must not overwrite the kept figures.
    pub(crate) fn out_folder(&self) -> PathBuf {
        let whole = !self.quick && self.only.is_empty() && self.rows.is_empty();
        let usual = if whole { "docs/benchmarks" } else { "target/benchmarks" };
        self.out.clone().unwrap_or_else(|| usual.into())
    }
}
