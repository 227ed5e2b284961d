//! The threads behind the answer: one moves rows from memory into the tables, one merges tables.

use std::sync::{Arc, MutexGuard};

use super::{
    error::{Result, StoreError},
    merge::{Merge, Source},
    overlay::Overlay,
    shared::{Mover, Retry, Shared},
};

/// Small overlays (snapshots make them) wait for company up to this many, because each bulk is one more
/// place to look for every read.
const FROZEN_SMALL_MAX: usize = 4;

/// So many unmerged bulks stop the mover, so that reads stay fast when merging cannot keep up.
const UNMERGED_MAX: usize = 16;

/// Moves frozen overlays into the tables until the store closes.
pub(super) fn run(shared: &Shared) {
    let mut retry = Retry::default();
    loop {
        let Some(due) = next(shared) else { return };
        match move_on(shared, &due) {
            Ok(()) => {
                retry = Retry::default();
                let mut mover = shared.mover();
                mover.failing = None;
                mover.merges_due += 1;
                drop(mover);
                shared.moved.notify_all();
                shared.unready.wake(u64::MAX);
            }
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::error!(%error, "rows cannot be moved into the tables; they stay in memory and in the log");
                put_right(shared);
                let mut mover = shared.mover();
                mover.failing = Some(error.to_string());
                drop(mover);
                shared.unready.wake(u64::MAX);
                if pause(shared, &mut retry) {
                    return;
                }
            }
        }
    }
}

/// Merges tables until the store closes.
pub(super) fn run_merges(shared: &Shared) {
    let mut done = None;
    let mut retry = Retry::default();
    loop {
        let due = {
            let mover = shared
                .moved
                .wait_while(shared.mover(), |mover| !mover.closing && done == Some(mover.merges_due))
                .expect("no holder of this lock panics");
            if mover.closing {
                return;
            }
            mover.merges_due
        };
        match shared.tables.compact() {
            Ok(true) => {
                retry = Retry::default();
                shared.nudge_mover();
            }
            Ok(false) => done = Some(due),
            Err(error) => {
                if shared.mover().closing {
                    return;
                }
                tracing::error!(%error, "tables cannot be merged; reads get slower until they can");
                put_right(shared);
                if shared.tables.unmerged() >= UNMERGED_MAX {
                    // Nothing moves now, and callers should not wait for it.
                    shared.mover().failing = Some(error.to_string());
                    shared.unready.wake(u64::MAX);
                }
                if pause(shared, &mut retry) {
                    return;
                }
            }
        }
    }
}

/// The next work tries it again before it begins.
fn put_right(shared: &Shared) {
    if let Err(error) = shared.tables.put_right() {
        tracing::error!(%error, "what failed work left behind stays for now");
    }
}

/// Sorts new keys when enough of them have gathered, so that no scan has to sort many. Without a lock on the
/// overlays: writes go on meanwhile.
fn sort(shared: &Shared) {
    let order = shared.overlays().active.order();
    order.settle();
}

/// Waits until rows should move, and says which: oldest first, durable ones only, because what the tables
/// hold can no longer be taken back.
fn next(shared: &Shared) -> Option<Vec<Arc<Overlay>>> {
    let mut mover = shared.mover();
    while !mover.closing {
        let due = due(shared, mover.flush_up_to);
        if !due.is_empty() && shared.tables.unmerged() < UNMERGED_MAX {
            return Some(due);
        }
        if std::mem::take(&mut mover.sort) {
            drop(mover);
            sort(shared);
            mover = shared.mover();
            continue;
        }
        mover = wait(shared, mover);
    }
    None
}

fn due(shared: &Shared, flush_up_to: u64) -> Vec<Arc<Overlay>> {
    let overlays = shared.overlays();
    let enough = overlays.frozen.len() >= FROZEN_SMALL_MAX
        || overlays.frozen.front().is_some_and(|oldest| oldest.last() <= flush_up_to)
        || overlays.frozen_bytes() >= shared.options.overlay_bytes_max;
    if !enough {
        return Vec::new();
    }
    let durable = shared.durable();
    overlays.frozen.iter().take_while(|overlay| overlay.last() <= durable).cloned().collect()
}

fn move_on(shared: &Shared, due: &[Arc<Overlay>]) -> Result<()> {
    let Some(last) = due.last().map(|overlay| overlay.last()) else {
        return Ok(());
    };
    let sources = due.iter().rev().map(|overlay| Box::new(overlay.all().map(Ok)) as Source<'_>).collect();
    let mut merge = Merge::new(sources, false)?;
    let changes = std::iter::from_fn(|| merge.next_change().transpose());
    shared.tables.ingest(changes, last)?;
    let done: Vec<_> = {
        let mut overlays = shared.overlays_mut();
        let count = overlays.frozen.iter().take_while(|overlay| overlay.last() <= last).count();
        overlays.frozen.drain(..count).collect()
    };
    // Freeing many rows takes a while and must not hold up readers.
    drop(done);
    if let Err(error) = shared.log.retire(last) {
        tracing::warn!(%error, "an old log segment stays behind");
    }
    Ok(())
}

fn wait<'a>(shared: &'a Shared, mover: MutexGuard<'a, Mover>) -> MutexGuard<'a, Mover> {
    shared.moved.wait(mover).expect("no holder of this lock panics")
}

/// Sleeps before the next try. Says whether the store closes.
fn pause(shared: &Shared, retry: &mut Retry) -> bool {
    let (mover, _) = shared
        .moved
        .wait_timeout_while(shared.mover(), retry.next(), |mover| !mover.closing)
        .expect("no holder of this lock panics");
    mover.closing
}
