//! A folder: may we, is it ours, is it free, is there room, does it open, is it whole.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::{HumanBytes, HumanCount};
use rustix::fs::{Access, access, statvfs};
use rustix::io::Errno;
use tally::Tally;
use tally::embedded::Stats;
use tally::embedded::store::{FORMAT, State};
use tally::engine::Engine;

use super::Report;
use crate::failure::Failure;
use crate::target::Local;
use crate::{folder, progress};

/// Below this the next burst of writes may not fit.
const FREE_BYTES_LOW: u64 = 1 << 30;
/// Below this the log itself may not grow.
const FREE_BYTES_GONE: u64 = 128 << 20;
/// At twice as many the store itself holds writes back.
const UNMERGED_MANY: usize = 8;
/// A clock that is this far behind the newest row was set back, or was wrong before.
const CLOCK_BEHIND_MS_MAX: u64 = 60_000;
/// 2024: a clock before this was never set.
const CLOCK_EARLIEST_MS: u64 = 1_704_067_200_000;

/// How far to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Without opening the store, because its settings are not known.
    Outside,
    /// As far as opening it shows.
    Inside,
    /// Every row.
    Everything,
}

/// Looks at a store's folder.
pub(super) async fn examine(
    url: &str,
    config: Option<PathBuf>,
    depth: Depth,
    report: &mut Report,
) -> Result<(), Failure> {
    let path = folder::of_store(url)?;
    let shown = path.display();
    if !path.is_dir() {
        let advice = format!("check the path, or make one with: tally serve --store embedded:{shown}");
        report.fail("folder", format!("{shown} is not there"), advice);
        return Ok(());
    }
    let may_write = permissions(&path, report);
    room(&path, report);
    if !format(&path, report) || !may_write {
        return Ok(());
    }
    if folder::is_in_use(&path) {
        report.ok("lock", "another process has the store open; to look further, ask its server with --url");
        return Ok(());
    }
    report.ok("lock", "free");
    if depth == Depth::Outside {
        report.warn("open", "not tried", "correct the settings first");
        return Ok(());
    }
    let started = Instant::now();
    match Local::open(url, config).await {
        Ok(local) => {
            report.ok("open", format!("opens in {} ms", started.elapsed().as_millis()));
            inside(&local, &path, depth, report).await;
            local.close().await;
        }
        Err(error) => report.fail("open", error.text(), rescue(&path)),
    }
    Ok(())
}

/// What to do about a store that does not open or is not whole.
fn rescue(path: &Path) -> String {
    let shown = path.display();
    format!(
        "do what it says; if it is damaged, restore a backup with `tally restore BACKUP --to NEW`, or save what can be read with `tally salvage {shown} --to NEW`"
    )
}

fn permissions(path: &Path, report: &mut Report) -> bool {
    let shown = path.display();
    if let Err(error) = access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        let (found, advice) = refused(error);
        report.fail("permissions", format!("{shown} {found}"), advice);
        return false;
    }
    let Ok(meta) = path.metadata() else {
        report.fail("permissions", format!("{shown} cannot be looked at"), "check the disk");
        return false;
    };
    if let Some(found) = open_to(meta.permissions().mode()) {
        report.warn("permissions", format!("{found} {shown}"), format!("chmod go-rwx {shown}"));
    } else if meta.uid() != rustix::process::geteuid().as_raw() {
        let advice = "a store opened by two users in turn may end up with files that one of them cannot write";
        report.warn("permissions", format!("{shown} belongs to another user"), advice);
    } else {
        report.ok("permissions", format!("{shown} is readable and writable"));
    }
    true
}

/// Why a folder cannot be used, and what to do.
fn refused(error: Errno) -> (&'static str, &'static str) {
    if error == Errno::ROFS {
        return (
            "cannot be written: the disk is read-only",
            "see why the disk is read-only, and mount it to be written",
        );
    }
    ("cannot be read and written by this user", "run as the user that owns it, or give this user the folder")
}

/// Who else may do something with a folder of this mode.
fn open_to(mode: u32) -> Option<&'static str> {
    if mode & 0o002 != 0 {
        Some("everyone may write to")
    } else if mode & 0o020 != 0 {
        Some("its group may write to")
    } else if mode & 0o004 != 0 {
        Some("everyone on this machine may look into")
    } else if mode & 0o040 != 0 {
        Some("its group may look into")
    } else {
        None
    }
}

fn room(path: &Path, report: &mut Report) {
    let Ok(disk) = statvfs(path) else {
        report.warn("disk", "the free space is unknown", "check the disk");
        return;
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let used: u64 = folder::files(path).map_or(0, |files| files.iter().map(|(_, bytes)| bytes).sum());
    let found = format!("{} free, {} used by the store", HumanBytes(free), HumanBytes(used));
    if free < FREE_BYTES_GONE {
        report.fail("disk", found, "free some space now; writes are refused when the disk is full");
    } else if free < FREE_BYTES_LOW || free < used / 2 {
        report.warn("disk", found, "make room: merging tables needs space beside them");
    } else {
        report.ok("disk", found);
    }
}

fn format(path: &Path, report: &mut Report) -> bool {
    match folder::format(path) {
        Some(found) if found == FORMAT => report.ok("format", format!("{found}; this release writes {FORMAT}")),
        Some(found) => {
            let (knows, advice) = match found < FORMAT {
                true => ("only", "it is from before the first release, and is not read: begin with another folder"),
                false => ("up to", "use a newer release of Tally"),
            };
            report.fail("format", format!("{found}; this release knows {knows} {FORMAT}"), advice);
            return false;
        }
        None => {
            let advice = format!(
                "name the folder of a store; if this was one, restore a backup, or save what can be read with `tally salvage {} --to NEW`",
                path.display()
            );
            report.fail("format", format!("{} holds no readable store", path.display()), advice);
            return false;
        }
    }
    true
}

async fn inside(local: &Local, path: &Path, depth: Depth, report: &mut Report) {
    let tally = local.tally();
    if let Some(engine) = tally.engine().embedded() {
        sizes(&engine.store().stats(), report);
    }
    clock(tally, report).await;
    if depth == Depth::Everything {
        checksums(tally, path, report).await;
        recount(local, report).await;
    }
}

fn sizes(stats: &Stats, report: &mut Report) {
    let (log, tables) = (HumanBytes(stats.log_bytes), HumanBytes(stats.tables_bytes));
    report.ok("size", format!("log {log} in {} segments, tables {tables}", stats.log_segments));
    match &stats.state {
        State::Running => report.ok("writes", "taken"),
        State::Failed { why } => report.fail("writes", format!("refused: {why}"), "see to the disk"),
        State::Closed => report.fail("writes", "refused: the store has closed", "try again"),
    }
    let unmerged = stats.tables_unmerged;
    if let Some(why) = &stats.tables_failing {
        report.fail("tables", format!("rows cannot be moved into tables: {why}"), "see to the disk");
    } else if unmerged > UNMERGED_MANY {
        let advice = "leave the server running for a while: it merges them by itself";
        report.warn("tables", format!("{unmerged} wait to be merged, which slows reads"), advice);
    } else {
        report.ok("tables", format!("{unmerged} wait to be merged"));
    }
}

async fn clock(tally: &Tally, report: &mut Report) {
    let now = tally.now();
    let newest = match tally.engine().prepare().await {
        Ok(stamp) => stamp.time(),
        Err(error) => return report.fail("clock", error.to_string(), "restore a backup"),
    };
    let ahead = newest.0.saturating_sub(now.0);
    if now.0 < CLOCK_EARLIEST_MS {
        report.fail("clock", format!("this machine says it is {now}"), "set the clock, for instance with NTP");
    } else if ahead > CLOCK_BEHIND_MS_MAX {
        let advice = "set the clock; until it catches up, new edges get the time of the newest; limits and expiry go by the clock";
        report.warn("clock", format!("{now}, but the newest row is from {newest}"), advice);
    } else {
        report.ok("clock", now.to_string());
    }
}

async fn checksums(tally: &Tally, path: &Path, report: &mut Report) {
    let engine = tally.engine().clone();
    let bar = progress::rows("checking");
    let shown = bar.clone();
    let checking = tokio::task::spawn_blocking(move || {
        engine.embedded().map(|engine| engine.store().check(|rows, _| shown.set_position(rows)))
    });
    let checked = checking.await;
    bar.finish_and_clear();
    match checked {
        Ok(Some(Ok(read))) => {
            let (rows, bytes) = (HumanCount(read.rows), HumanBytes(read.bytes));
            report.ok("checksums", format!("{rows} rows, {bytes}, are as they were written"));
        }
        Ok(Some(Err(error))) => report.fail("checksums", error.to_string(), rescue(path)),
        Ok(None) => {}
        Err(error) => report.fail("checksums", error.to_string(), "try again"),
    }
}

pub(super) async fn recount(local: &Local, report: &mut Report) {
    let bar = progress::rows("recounting");
    let shown = bar.clone();
    let verified = local.verify(false, move |rows| shown.set_position(rows)).await;
    bar.finish_and_clear();
    super::server::counts(verified, report);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_disk_is_not_taken_for_a_wrong_user() {
        assert!(refused(Errno::ROFS).0.contains("the disk is read-only"));
        assert!(refused(Errno::ACCESS).1.contains("user"));
    }

    #[test]
    fn a_folder_is_for_its_owner_alone() {
        assert_eq!(open_to(0o700), None);
        for mode in [0o740, 0o750, 0o704, 0o720, 0o702, 0o777] {
            assert!(open_to(mode).is_some(), "{mode:o}");
        }
    }
}
