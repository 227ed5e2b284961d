//! `tally verify`: recount everything, report every drift, mend it if asked.

use clap::Args;
use indicatif::HumanCount;
use tally::{DriftItem, VerifyReport};

use super::failure::Failure;
use super::output::{Json, cell, say, table};
use super::progress;
use super::target::{self, TargetArgs};

pub(super) const AFTER_HELP: &str = "\
Examples:
  tally verify                                  report, exit code 3 when something does not add up
  tally verify --repair --json                  mend it, and print the report as JSON
  tally verify --store embedded:./tally-data    without a server
  tally verify --store postgres://tally@db/app  the same, beside the servers of a database
  tally verify --store redis://cache:6379       or of a Redis";

/// The exit code for drift that is still there.
const DRIFT: u8 = 3;

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Set what does not add up to what the rows behind it say
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: VerifyArgs) -> Result<(), Failure> {
    let bar = progress::rows("recounting");
    let shown = bar.clone();
    let told = move |rows| shown.set_position(rows);
    let report = target::with(&args.target, async |target| target.verify(args.repair, told).await).await;
    bar.finish_and_clear();
    let report = report?;
    if args.target.json {
        Json::of(&report)?.show(true, |_: VerifyReport| String::new())?;
    } else {
        say(&words(&report))?;
    }
    if is_sound(&report) { Ok(()) } else { Err(Failure::reported(DRIFT)) }
}

/// Whether everything adds up now. Whether all strays were mended is for the next look to say.
pub(super) fn is_sound(report: &VerifyReport) -> bool {
    report.repaired >= report.drifted && report.strays.is_empty()
}

fn words(report: &VerifyReport) -> String {
    let (rows, edges) = (HumanCount(report.rows.max(report.edges)), HumanCount(report.edges));
    let counted = format!("Recounted {rows} rows, {edges} edges among them, and {} totals", HumanCount(report.totals));
    let mut parts = Vec::new();
    if report.drifted > 0 {
        let header = ["relation", "object", "kind", "subject", "stored", "counted", "off by"];
        parts.push(table(header, report.drift.iter().map(row).collect()));
        let hidden = report.drifted.saturating_sub(report.drift.len() as u64);
        if hidden > 0 {
            parts.push(format!("… and {} more.", HumanCount(hidden)));
        }
    }
    if !report.strays.is_empty() {
        parts.push(format!("Rows, lists and orders that do not belong together:\n  {}", report.strays.join("\n  ")));
        let hidden = report.strayed.saturating_sub(report.strays.len() as u64);
        if hidden > 0 {
            parts.push(format!("  … and {} more.", HumanCount(hidden)));
        }
    }
    let drifted = HumanCount(report.drifted);
    parts.push(match (report.drifted, report.repaired) {
        (0, _) if report.strays.is_empty() => format!("{counted}: everything adds up."),
        (0, 0) => format!(
            "{counted}: the totals add up, but what is above does not. Mend it with: tally verify --repair. What is left after that comes right by restoring a backup."
        ),
        (0, mended) => format!("{counted}: {} of those above mended; see it with: tally verify", HumanCount(mended)),
        (_, 0) => format!("{counted}: {drifted} do not add up. Mend them with: tally verify --repair"),
        (_, repaired) => format!("{counted}: {drifted} did not add up; {} mended.", HumanCount(repaired)),
    });
    parts.join("\n")
}

fn row(item: &DriftItem) -> [String; 7] {
    [
        item.relation.clone(),
        cell(item.object.as_ref()),
        cell(item.kind.as_ref()),
        cell(item.subject.as_ref()),
        item.stored.to_string(),
        item.counted.to_string(),
        format!("{:+}", item.stored - item.counted),
    ]
}
