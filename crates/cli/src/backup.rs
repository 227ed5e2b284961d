//! `tally backup`: a copy as of one moment, while the store is in use.

use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use tally_client::BackupMade;

use super::failure::Failure;
use super::output::Json;
use super::progress;
use super::target::{self, TargetArgs};

pub(super) const AFTER_HELP: &str = "\
Examples:
  tally backup before-release                                    by the server, below its backup.folder
  tally backup /mnt/copies/monday --store embedded:./tally-data  straight from a folder
A backup is itself a store; `tally restore` checks it and puts it in place. A store in PostgreSQL is
backed up with PostgreSQL's own tools, such as pg_dump, and one in Redis by Redis' own files: see
BGSAVE and the append-only file. Either can be copied into a folder with `tally copy`.";

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// A name below the server's backup folder (the time, when left out); with --store, a path
    dest: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: BackupArgs) -> Result<(), Failure> {
    let bar = progress::rows("copying");
    let shown = bar.clone();
    let told = move |rows| shown.set_position(rows);
    let made = target::with(&args.target, async |target| target.backup(args.dest.as_deref(), told).await).await;
    bar.finish_and_clear();
    Json::of(&made?)?.show(args.target.json, |made: BackupMade| {
        format!("{} rows, {}, are in {}", HumanCount(made.rows), HumanBytes(made.bytes), made.path)
    })
}
