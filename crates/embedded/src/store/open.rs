//! Opening: lock, format, tables, log.

use std::{
    collections::VecDeque,
    fs,
    path::Path,
    thread::{self, ScopedJoinHandle},
};

use byteview::ByteView;

use super::{
    error::{Doing, Result, StoreError},
    folder::{Folder, make_folder, sync_folder},
    log::{LogFolder, LogWriter},
    options::Options,
    overlay::{Overlay, Overlays},
    replay::{Replayed, replay},
    shared::Shared,
    tables::Tables,
    versions::CURRENT_PARTIAL,
};

/// Less is not worth a thread.
const GATHERED_BYTES_MIN: usize = 1 << 20;

/// How many overlays are filled at a time.
const BUILDERS_MAX: usize = 4;

/// Everything that the store's threads need to start.
pub(super) fn open(path: &Path, options: Options) -> Result<(Shared, LogWriter)> {
    let folder = Folder::lock(path)?;
    let format = folder.format().inspect_err(|_| folder.leave())?;
    let created = match format {
        None => {
            clear_interrupted(&folder)?;
            true
        }
        Some(format) => {
            migrate(&folder, format)?;
            require(&folder.rows().join("current"))?;
            require(&folder.rows().join("tables"))?;
            require(&folder.log())?;
            false
        }
    };
    if created {
        make_folder(&folder.log())?;
        make_folder(&folder.rows())?;
    } else {
        // Whoever had it open may have been killed between a rename and its sync. What is read from here on is
        // built upon, so it must not be undone any more.
        for path in [folder.path(), &folder.log(), &folder.rows(), &folder.rows().join("tables")] {
            sync_folder(path)?;
        }
        super::check::verify_manifest(&folder.rows())?;
        remove_temporary(&folder.rows())?;
    }
    let tables = Tables::open(&folder.rows(), options.cache_bytes)?;
    let ingested = tables.ingested()?;
    let (overlays, replayed) = read_log(&folder, &options, ingested, created)?;
    if let Some(tail) = &replayed.tail {
        tail.secure()?;
    }

    let log = LogFolder::new(folder.log(), options.segment_bytes);
    let last = replayed.last.max(ingested);
    for segment in &replayed.segments {
        log.add_closed(segment.path.clone(), segment.last);
    }
    // A fresh segment each time: what a torn tail left behind is never written next to.
    let writer = LogWriter::open(&log, replayed.newest + 1, last + 1, last)?;
    log.retire(ingested)?;
    if created {
        sync_folder(&folder.log())?;
        sync_folder(folder.path())?;
        folder.sync_name()?;
        folder.write_format()?;
    }
    Ok((Shared::new(folder, options, log, tables, overlays, last), writer))
}

/// Reads what the tables do not have yet into overlays.
fn read_log(folder: &Folder, options: &Options, ingested: u64, created: bool) -> Result<(Overlays, Replayed)> {
    remove_spares(folder)?;
    let mut overlays = Overlays::default();
    let (replayed, damage) = thread::scope(|scope| {
        let mut gathered = Gathered::default();
        let mut building: VecDeque<ScopedJoinHandle<'_, Overlay>> = VecDeque::new();
        let found = replay(&folder.log(), ingested, u64::MAX, |position, payload| {
            gathered.batches.push((position, ByteView::new(payload)));
            gathered.bytes += payload.len();
            // Filling the maps takes longer than reading, so that goes on meanwhile.
            if gathered.bytes >= options.overlay_bytes_max.max(GATHERED_BYTES_MIN) {
                let gathered = std::mem::take(&mut gathered);
                building.push_back(scope.spawn(move || Overlay::of(gathered.bytes, &gathered.batches)));
                if building.len() > BUILDERS_MAX {
                    overlays.add_frozen(building.pop_front().map(built));
                }
            }
        });
        let rest = Overlay::of(gathered.bytes, &gathered.batches);
        overlays.add_frozen(building.into_iter().map(built).chain([rest]));
        found
    })?;
    if let Some(damage) = damage {
        return Err(damage);
    }
    // A running store always has a segment.
    if !created && replayed.segments.is_empty() {
        return Err(StoreError::damaged(folder.log(), "there is no log segment in it"));
    }
    Ok((overlays, replayed))
}

/// Batches of the log that will be one overlay.
#[derive(Default)]
struct Gathered {
    batches: Vec<(u64, ByteView)>,
    bytes: usize,
}

fn built(thread: ScopedJoinHandle<'_, Overlay>) -> Overlay {
    thread.join().expect("filling a map does not panic")
}

/// Spares of an earlier run may be half made.
fn remove_spares(folder: &Folder) -> Result<()> {
    let log = folder.log();
    for entry in fs::read_dir(&log).doing("list", &log)? {
        let path = entry.doing("list", &log)?.path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"spare-")) {
            fs::remove_file(&path).doing("remove", &path)?;
        }
    }
    Ok(())
}

/// A process that was killed while it named a list of tables leaves its draft behind.
fn remove_temporary(rows: &Path) -> Result<()> {
    for entry in fs::read_dir(rows).doing("list", rows)? {
        let path = entry.doing("list", rows)?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name.starts_with(b".tmp") || name == CURRENT_PARTIAL.as_bytes() {
            fs::remove_file(&path).doing("remove", &path)?;
        }
    }
    Ok(())
}

/// Without FORMAT the creation of this store was interrupted, so there can be no data in it.
fn clear_interrupted(folder: &Folder) -> Result<()> {
    let (log, rows) = (folder.log(), folder.rows());
    let lost_format =
        || StoreError::damaged(folder.path().join("FORMAT"), "it is missing, and there is data next to it");
    if log.exists() {
        let (found, damage) = replay(&log, 0, u64::MAX, |_, _| {})?;
        if found.last > 0 || damage.is_some() {
            return Err(lost_format());
        }
        fs::remove_dir_all(&log).doing("remove", &log)?;
    }
    if rows.join("tables").exists() {
        let mut tables = fs::read_dir(rows.join("tables")).doing("list", &rows)?;
        if tables.next().is_some() {
            return Err(lost_format());
        }
    }
    if rows.exists() {
        fs::remove_dir_all(&rows).doing("remove", &rows)?;
    }
    Ok(())
}

/// The place for steps from older formats. There is none yet: format 1 is the first.
fn migrate(folder: &Folder, format: u32) -> Result<()> {
    match format {
        super::FORMAT => Ok(()),
        _ => Err(StoreError::damaged(folder.path().join("FORMAT"), "it names a format that never was")),
    }
}

fn require(path: &Path) -> Result<()> {
    if path.try_exists().doing("look for", path)? { Ok(()) } else { Err(StoreError::damaged(path, "it is missing")) }
}
