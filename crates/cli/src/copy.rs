//! `tally copy`: move a whole store to another, such as from a folder to a database.

use std::time::Instant;

use clap::Args;
use indicatif::{HumanCount, HumanDuration, ProgressBar};
use serde::{Deserialize, Serialize};
use tally::{CopyError, CopyPhase, CopyProgress, CopyReport, Error, Opening, Options};

use super::failure::Failure;
use super::output::{Json, table};
use super::{progress, target};

pub(super) const AFTER_HELP: &str = "\
Examples:
  tally copy --from embedded:./tally-data --to postgres://tally@db/app
  tally serve --store postgres://tally@db/app
  tally copy --from postgres://tally@db/app --to embedded:/mnt/new/tally-data
  tally copy --from embedded:./tally-data --to redis://cache:6379
  tally copy --from redis://cache:6379 --to redis+cluster://r1:6379,r2:6379

Stop the servers of both stores first. Edges, objects, suspended subjects, idempotency keys, jobs
and API keys are copied; counts are counted anew. A copy that was stopped goes on where it was with
the same command, and nobody can serve from it until it is whole and both stores were compared.";

/// The exit code for a copy that does not add up.
const DRIFT: u8 = 3;

#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// The store to copy
    #[arg(long, value_name = "URL")]
    from: String,
    /// Where to: an empty store, or one that does not exist yet
    #[arg(long, value_name = "URL")]
    to: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A copy that was made.
#[derive(Debug, Serialize, Deserialize)]
struct Copied {
    #[serde(flatten)]
    report: CopyReport,
    elapsed_ms: u64,
}

pub(super) async fn run(args: CopyArgs) -> Result<(), Failure> {
    for url in [&args.from, &args.to] {
        Opening::parse(url).map_err(|error| Failure::usage(error.to_string()))?;
    }
    target::require_there(&args.from).await?;
    let started = Instant::now();
    let bar = progress::rows("copying");
    let shown = bar.clone();
    let told = move |told: CopyProgress| show(&shown, told);
    let copied = tally::copy(&args.from, &args.to, &Options::default(), told).await;
    bar.finish_and_clear();
    let report = copied.map_err(failure)?;
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Json::of(&Copied { report, elapsed_ms })?.show(args.json, |copied: Copied| words(&copied, &args.to))
}

fn show(bar: &ProgressBar, told: CopyProgress) {
    let phase = match told.phase {
        CopyPhase::Copying => "copying",
        CopyPhase::Recounting => "recounting the copy",
        CopyPhase::Comparing => "comparing both stores",
    };
    if bar.message() != phase {
        // Each phase has a speed of its own.
        bar.reset();
        bar.set_message(phase);
    }
    bar.set_position(told.rows);
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Copy(CopyError::Unsound { .. }) => Failure::from(error).exiting(DRIFT),
        Error::Store(_) => Failure::new(format!("{error}; the same command goes on where this one stopped")),
        other => other.into(),
    }
}

fn words(copied: &Copied, to: &str) -> String {
    let report = &copied.report;
    let kinds = [
        ("edges", report.edges),
        ("objects", report.objects),
        ("suspended subjects", report.subjects),
        ("idempotency keys", report.replays),
        ("jobs", report.jobs),
        ("API keys", report.api_keys),
    ];
    let mut rows: Vec<[String; 2]> =
        kinds.iter().map(|(kind, rows)| [(*kind).to_owned(), HumanCount(*rows).to_string()]).collect();
    rows.push(["all rows".into(), HumanCount(report.rows).to_string()]);
    let mut text = table(["copied", "rows"], rows);
    if report.resumed_rows > 0 {
        text += &format!("\n{} of them were there already.", HumanCount(report.resumed_rows));
    }
    let (took, totals) = (std::time::Duration::from_millis(copied.elapsed_ms), HumanCount(report.totals));
    let took = HumanDuration(took);
    let to = tally::redacted(to);
    format!(
        "{text}\nBoth stores agree, and {totals} totals add up. It took {took}. Serve it with: tally serve --store {to}"
    )
}
