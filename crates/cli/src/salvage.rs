//! `tally salvage`: what can still be read of a damaged folder, as a new store.

use std::path::PathBuf;

use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use serde::{Deserialize, Serialize};
use tally::embedded::store;

use super::failure::Failure;
use super::output::Json;
use super::{folder, progress};

pub(super) const AFTER_HELP: &str = "\
Example:
  tally salvage ./tally-data --to ./tally-saved
  tally verify --repair --store embedded:./tally-saved
  tally serve --store embedded:./tally-saved

For a store that does not open, where there is no backup or the backup is old. The damaged folder is
only read. What could not be read is listed; counts may then not equal their edges any more, which
`tally verify --repair` mends.";

#[derive(Debug, Args)]
pub(super) struct SalvageArgs {
    /// The folder of the damaged store
    damaged: PathBuf,
    /// Where the new store shall be: a folder that is empty or does not exist yet
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was saved.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    path: String,
    rows: u64,
    bytes: u64,
    /// What could not be read.
    lost: Vec<String>,
}

pub(super) fn run(args: &SalvageArgs) -> Result<(), Failure> {
    let SalvageArgs { damaged, to, json } = args;
    if !damaged.join("log").is_dir() && !damaged.join("rows").is_dir() {
        let text = format!("{} has nothing of a store in it: check the path", damaged.display());
        return Err(Failure::new(text));
    }
    if folder::is_in_use(damaged) {
        return Err(folder::in_use(damaged));
    }
    let inside = std::path::absolute(to).and_then(|to| Ok(to.starts_with(std::path::absolute(damaged)?)));
    if inside.unwrap_or(false) {
        let text = format!("{} is inside the damaged store, which is only read: choose another folder", to.display());
        return Err(Failure::new(text));
    }
    let bar = progress::rows("saving");
    let saved = store::salvage(damaged, to, |rows, _| bar.set_position(rows));
    bar.finish_and_clear();
    let report = saved?;
    let saved =
        Saved { path: to.display().to_string(), rows: report.rows, bytes: report.bytes, lost: report.lost.clone() };
    Json::of(&saved)?.show(*json, words)
}

fn words(saved: Saved) -> String {
    let mut text = format!("{} rows, {}, are in {}", HumanCount(saved.rows), HumanBytes(saved.bytes), saved.path);
    if saved.lost.is_empty() {
        text += "\nNothing was lost.";
    } else {
        text += "\nLost:";
        for lost in &saved.lost {
            text += &format!("\n  {lost}");
        }
        text += &format!("\nNow recount it: tally verify --repair --store embedded:{}", saved.path);
    }
    text
}
