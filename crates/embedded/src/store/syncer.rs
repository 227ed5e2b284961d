//! The thread that makes batches durable: one sync for whatever has gathered during the last one.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use byteview::ByteView;

use super::{
    batch::BUFFER_BYTES_KEPT,
    error::{Result, StoreError},
    log::LogWriter,
    options::Sync,
    overlay::{Overlay, Overlays},
    replay::replay,
    shared::{Retry, Shared, State, Writer},
};

/// Runs until the store closes. Everything that was applied is on disk when it returns, unless the log fails.
pub(super) fn run(shared: &Shared, mut log: LogWriter) {
    let mut framed = Vec::new();
    let mut synced_at = Instant::now();
    while let Some(last) = next(shared, &mut framed, synced_at) {
        synced_at = Instant::now();
        match log.append(&shared.log, &mut framed) {
            Ok(()) => {
                let micros = synced_at.elapsed().as_micros();
                shared.sync_micros.store(u64::try_from(micros).unwrap_or(u64::MAX), Ordering::Relaxed);
                publish(shared, last);
            }
            Err(error) => {
                let fresh = fail(shared, &log, &error);
                match recover(shared, &log, fresh) {
                    Some(fresh) => log = fresh,
                    None => break,
                }
            }
        }
        framed.clear();
        framed.shrink_to(BUFFER_BYTES_KEPT);
    }
    let mut writer = shared.writer();
    writer.state = State::Closed;
    drop(writer);
    shared.waiters.wake(u64::MAX);
    shared.unready.wake(u64::MAX);
}

/// Waits for records and takes them all. `None` when the store closes and nothing is left.
fn next(shared: &Shared, framed: &mut Vec<u8>, synced_at: Instant) -> Option<u64> {
    let mut writer = shared.writer();
    loop {
        let pause = match shared.options.sync {
            Sync::Always => Duration::ZERO,
            Sync::Every(interval) => interval.saturating_sub(synced_at.elapsed()),
        };
        if !writer.pending.is_empty() && (pause.is_zero() || writer.closing) {
            std::mem::swap(&mut writer.pending, framed);
            return Some(writer.last);
        }
        if writer.closing {
            return None;
        }
        writer = if writer.pending.is_empty() {
            writer.asleep = true;
            shared.written.wait(writer).expect("no holder of this lock panics")
        } else {
            let (writer, _) = shared.written.wait_timeout(writer, pause).expect("no holder of this lock panics");
            writer
        };
        writer.asleep = false;
    }
}

pub(super) fn publish(shared: &Shared, durable: u64) {
    shared.durable.store(durable, Ordering::Release);
    shared.waiters.wake(durable);
    shared.unready.wake(u64::MAX);
    // A full overlay may have waited for this.
    if !shared.overlays().frozen.is_empty() {
        shared.nudge_mover();
    }
}

/// Refuses writes, and takes back whatever is not durable. First from the log, because what is refused must not
/// come back; only then from memory and from whoever waits. Gives the segment to go on with if that took one.
pub(super) fn fail(shared: &Shared, log: &LogWriter, error: &StoreError) -> Option<LogWriter> {
    tracing::error!(%error, "the log cannot be written; writes are refused until it can");
    let why = error.to_string();
    let last = {
        let mut writer = shared.writer();
        writer.state = State::Failed { why: why.clone() };
        writer.last
    };
    let cut = log.cut();
    // A segment that follows what is durable cuts as well.
    let fresh = if cut.is_err() { log.restart(&shared.log, last).ok() } else { None };
    let sure = cut.is_ok() || fresh.is_some();
    if !sure {
        tracing::error!("what was refused may be back if the machine crashes before the log can be written again");
    }
    {
        // Held throughout, so that nobody reads rows that are about to go.
        let mut writer = shared.writer();
        shared.discard(&mut writer, log.synced(), &why, sure);
        // Some of what was taken may have reached the disk before the failure.
        shared.durable.store(log.synced(), Ordering::Release);
        if let Err(error) = take_back(shared, &mut writer, log.synced()) {
            tracing::error!(%error, "nothing can be read until the log can be");
        }
    }
    shared.waiters.wake(u64::MAX);
    shared.unready.wake(u64::MAX);
    fresh
}

/// Rebuilds the overlays from the log without what is not durable. Nothing is applied meanwhile: the writer is held,
/// so that whoever asks for a moment knows which rows are its own.
fn take_back(shared: &Shared, writer: &mut Writer, durable: u64) -> Result<()> {
    let (kept, lost) = {
        let overlays = shared.overlays();
        let kept: Vec<_> = overlays.frozen.iter().filter(|overlay| overlay.last() <= durable).cloned().collect();
        let lost = overlays.active.last() > durable || kept.len() < overlays.frozen.len();
        (kept, lost)
    };
    if !lost {
        writer.visible = durable;
        return Ok(());
    }
    let from = match kept.last() {
        Some(overlay) => overlay.last(),
        None => shared.tables.ingested()?,
    };
    let mut active = Overlay::default();
    let (_, damage) = replay(shared.log.path(), from, durable, |position, payload| {
        active.apply(position, &ByteView::new(payload));
    })?;
    if let Some(damage) = damage
        && active.last() < durable
    {
        return Err(damage);
    }
    let mut overlays = shared.overlays_mut();
    // The mover may have finished with some of them by now.
    let frozen = std::mem::take(&mut overlays.frozen).into_iter().filter(|overlay| overlay.last() <= durable).collect();
    *overlays = Overlays { active, frozen };
    writer.visible = durable;
    writer.taken_back += 1;
    Ok(())
}

/// Tries until a fresh segment stands, which cuts the log at what is durable. `None` when the store closes.
pub(super) fn recover(shared: &Shared, log: &LogWriter, mut fresh: Option<LogWriter>) -> Option<LogWriter> {
    let mut retry = Retry::default();
    let last = shared.writer().last;
    loop {
        {
            let writer = shared.writer();
            let (writer, _) = shared
                .written
                .wait_timeout_while(writer, retry.next(), |writer| !writer.closing)
                .expect("no holder of this lock panics");
            if writer.closing {
                return None;
            }
        }
        let taken_back = take_back(shared, &mut shared.writer(), log.synced());
        let ready = taken_back.and_then(|()| fresh.take().map_or_else(|| log.restart(&shared.log, last), Ok));
        match ready {
            Ok(fresh) => {
                tracing::info!("the log can be written again; writes are taken");
                shared.writer().state = State::Running;
                shared.unready.wake(u64::MAX);
                return Some(fresh);
            }
            Err(error) => {
                let why = error.to_string();
                shared.writer().state = State::Failed { why };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Batch, by_hand::ByHand};

    fn batch(value: &[u8]) -> Batch {
        let mut batch = Batch::new();
        batch.put(b"row", value);
        batch
    }

    #[test]
    fn a_batch_made_from_what_was_taken_back_is_not_applied() {
        let folder = tempfile::tempdir().unwrap();
        let (store, mut log) = ByHand::open(folder.path());
        store.apply(&batch(b"1")).unwrap();
        log.sync(&store);
        let before = store.moment();
        store.apply(&batch(b"2")).unwrap();
        let on = store.moment();
        log.fail(&store);
        let failed = store.moment();
        assert_eq!(failed.position, before.position);
        log.recover(&store);
        for gone in [on, before] {
            assert_eq!(store.apply_if(&batch(b"3"), gone).unwrap(), None);
        }
        assert_eq!(store.get(b"row").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(store.apply_if(&batch(b"3"), store.moment()).unwrap(), Some(3));
    }

    #[test]
    fn rows_that_go_later_than_they_were_refused_are_taken_back_once_more() {
        let folder = tempfile::tempdir().unwrap();
        let (store, mut log) = ByHand::open(folder.path());
        store.apply(&batch(b"1")).unwrap();
        log.sync(&store);
        store.apply(&batch(b"2")).unwrap();
        // The log cannot be read at first, so the rows stay.
        let (at, away) = (folder.path().join("log"), folder.path().join("away"));
        std::fs::rename(&at, &away).unwrap();
        log.fail(&store);
        std::fs::rename(&away, &at).unwrap();
        let refused = store.moment();
        assert_eq!((refused.position, store.get(b"row").unwrap().as_deref()), (2, Some(&b"2"[..])));
        log.recover(&store);
        assert_eq!(store.get(b"row").unwrap().as_deref(), Some(&b"1"[..]));
        assert_ne!(store.moment().taken_back, refused.taken_back);
        assert_eq!(store.snapshot().taken_back(), store.moment().taken_back);
    }
}
