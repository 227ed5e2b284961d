//! When the worker looks again, and who may have it look sooner.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tally_core::Catalog;
use tally_core::due::settling;
use tally_core::rows::{Partitions, RowKind};
use tally_core::time::Timestamp;
use tokio::sync::Notify;

use crate::{MadeDue, Settled};

/// What is due within this is told to whoever does it; what is due later is found by its looks ([`super::LOOK_PROMPTLY`]).
const SOON_MS: u64 = 2_000;

/// What the worker and the runner's observer share.
pub struct Bell {
    catalog: Arc<Catalog>,
    pub(super) lanes: Vec<Lane>,
}

/// Kinds of rows that are looked at together, one after another. Lanes do not wait for each other: what somebody waits for has one
/// for each of its kinds, so that letting people in is not kept waiting by giving up the tickets of a million others.
pub(super) struct Lane {
    pub(super) kinds: Vec<RowKind>,
    /// Whether somebody waits for it.
    pub(super) is_prompt: bool,
    plan: Mutex<Plan>,
    rings: Notify,
}

#[derive(Clone, Copy, Default)]
struct Plan {
    /// What it looks at.
    held: Partitions,
    /// By when it looks again.
    by: Timestamp,
}

impl Lane {
    fn new(kinds: Vec<RowKind>, is_prompt: bool) -> Self {
        Self { kinds, is_prompt, plan: Mutex::default(), rings: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn plan(&self, held: Partitions, by: Timestamp) {
        *self.lock() = Plan { held, by };
    }

    pub(super) fn plan_sooner(&self, by: Timestamp) {
        let mut plan = self.lock();
        plan.by = plan.by.min(by);
    }

    pub(super) fn planned(&self) -> Timestamp {
        self.lock().by
    }

    pub(super) async fn rung(&self) {
        self.rings.notified().await;
    }

    fn ring_by(&self, by: Timestamp) {
        let mut plan = self.lock();
        if by < plan.by {
            plan.by = by;
            self.rings.notify_one();
        }
    }
}

impl Bell {
    /// A bell that nobody has planned anything for.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        let is_prompt = |kind: &RowKind| settling(*kind).is_some_and(|settling| settling.within_ms == 0);
        let due = RowKind::ALL.into_iter().filter(|kind| settling(*kind).is_some());
        let (prompt, others): (Vec<RowKind>, Vec<RowKind>) = due.partition(is_prompt);
        let prompt = prompt.into_iter().map(|kind| Lane::new(vec![kind], true));
        let lanes = prompt.chain([Lane::new(others, false)]).collect();
        Self { catalog, lanes }
    }

    /// By when a row should be settled.
    fn by(&self, due: &MadeDue) -> Option<Timestamp> {
        let settling = settling(due.kind).filter(|settling| due.at >= settling.from)?;
        Some(settling.by(due.at, &self.catalog))
    }

    /// To be told of every batch: what it made may be due sooner than the next look.
    pub fn hear(&self, settled: &Settled) {
        if settled.due.is_empty() {
            return;
        }
        for lane in &self.lanes {
            let held = lane.lock().held;
            let own = settled.due.iter().filter(|due| lane.kinds.contains(&due.kind) && held.contains(due.partition));
            if let Some(by) = own.filter_map(|due| self.by(due)).min() {
                lane.ring_by(by);
            }
        }
    }

    /// Whether a batch made something for which somebody waits and which another server does: that one should look soon.
    pub fn concerns_others(&self, settled: &Settled) -> bool {
        let soon = settled.at.plus_ms(SOON_MS);
        let prompt = || self.lanes.iter().filter(|lane| lane.is_prompt);
        settled.due.iter().any(|due| {
            let mut others =
                prompt().filter(|lane| lane.kinds.contains(&due.kind) && !lane.lock().held.contains(due.partition));
            others.next().is_some() && self.by(due).is_some_and(|by| by <= soon)
        })
    }

    /// Has the worker look at once at what somebody waits for: another server says that there is something.
    pub fn ring(&self) {
        self.lanes.iter().filter(|lane| lane.is_prompt).for_each(|lane| lane.ring_by(Timestamp(0)));
    }
}
