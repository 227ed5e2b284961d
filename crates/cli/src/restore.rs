//! `tally restore`: copy a backup, check the copy, and only then put it in place.
//!
//! The copy is checked rather than the backup itself: opening a store writes to its folder, and a backup
//! should stay as it is. What is checked is then also what will be used.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use tally::embedded::{
    CheckReport, Options,
    store::{Partial, Store},
};
use tally_client::BackupMade;

use super::failure::Failure;
use super::output::Json;
use super::{folder, progress};

pub(super) const AFTER_HELP: &str = "\
Example:
  tally restore ./tally-backups/monday --to ./tally-data
  tally serve --store embedded:./tally-data";

#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// The folder of a backup
    backup: PathBuf,
    /// Where the store shall be: a folder that is empty or does not exist yet
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &RestoreArgs) -> Result<(), Failure> {
    let RestoreArgs { backup, to, json } = args;
    for path in [backup, to] {
        // As a path it would be a folder of this name, which nobody means.
        let own = match path.to_str().and_then(|text| text.split_once("://")) {
            Some((scheme, _)) if scheme.starts_with("postgres") => "PostgreSQL has pg_dump and pg_restore",
            Some((scheme, _)) if scheme.starts_with("redis") => "Redis starts from its own files",
            _ => continue,
        };
        return Err(Failure::usage(format!(
            "a backup and what is restored are folders; {own}, and `tally copy` moves a restored folder into it"
        )));
    }
    folder::require_store(backup)?;
    if to.file_name().is_none() {
        return Err(Failure::usage(format!("{} names no folder", to.display())));
    }
    let _held = folder::hold(backup).map_err(|_| {
        Failure::new(format!("{} is a store in use, not a backup: copy it with `tally backup`", backup.display()))
    })?;
    let partial = Partial::begin(to)?;
    let report = fill(backup, &partial.path())?;
    partial.finish()?;
    let made = BackupMade { path: to.display().to_string(), rows: report.rows, bytes: report.bytes };
    Json::of(&made)?.show(*json, |made: BackupMade| {
        let size = HumanBytes(made.bytes);
        format!("{} rows, {size}, checked and restored to {}", HumanCount(made.rows), made.path)
    })
}

/// Copies the backup and reads all of the copy.
fn fill(backup: &Path, partial: &Path) -> Result<CheckReport, Failure> {
    let files = folder::files(backup).map_err(|error| doing("read", backup, &error))?;
    let bar = progress::bytes("copying", files.iter().map(|(_, bytes)| bytes).sum());
    for (file, bytes) in &files {
        let target = partial.join(file.strip_prefix(backup).unwrap_or(file));
        copy(file, &target).map_err(|error| doing("copy to", &target, &error))?;
        bar.inc(*bytes);
    }
    bar.finish_and_clear();
    // A store has folders without files in them, too.
    for name in ["log", "rows"] {
        fs::create_dir_all(partial.join(name)).map_err(|error| doing("create", partial, &error))?;
    }
    let bar = progress::rows("checking");
    let store = Store::open(partial, Options::default()).map_err(|error| unsound(backup, partial, &error))?;
    let checked = store.check(|rows, _| bar.set_position(rows));
    store.close();
    bar.finish_and_clear();
    checked.map_err(|error| unsound(backup, partial, &error))
}

fn copy(file: &Path, target: &Path) -> io::Result<()> {
    let folder = parent(target);
    fs::create_dir_all(&folder)?;
    fs::copy(file, target)?;
    // A backup may have been made read-only to keep it; a store must be writable, and is nobody else's.
    fs::set_permissions(target, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    File::open(target)?.sync_all()?;
    File::open(folder)?.sync_all()
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn doing(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}; nothing was restored", path.display()))
}

/// The error names files of the copy; the person knows those of the backup.
fn unsound(backup: &Path, partial: &Path, error: &tally::embedded::store::StoreError) -> Failure {
    let text = error.to_string().replace(&*partial.to_string_lossy(), &backup.to_string_lossy());
    Failure::new(format!("this backup is not sound, and nothing was restored: {text}"))
}
