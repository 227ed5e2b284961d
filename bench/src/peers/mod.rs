//! The systems that are measured. Each does the same work: de-duplicate, count, newest-first list by
//! object, newest-first list by subject.

pub(crate) mod in_process;
pub(crate) mod postgres;
pub(crate) mod redis;
pub(crate) mod redis_dialogue;
pub(crate) mod tally;
pub(crate) mod tally_dialogue;

use crate::workload::Workload;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A workload that the connections of a row share. With one client thread the lock is never contended.
pub(crate) type SharedWorkload = Arc<Mutex<Workload>>;

/// Locks the workload. A poisoned lock means that another connection panicked, which ends the run anyway.
pub(crate) fn lock(workload: &SharedWorkload) -> MutexGuard<'_, Workload> {
    workload.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the key or path of the next thing to read.
pub(crate) type Pick = Box<dyn FnMut(&mut Vec<u8>)>;

/// The seed that every system's workload starts from.
pub(crate) const SEED: u64 = 42;
