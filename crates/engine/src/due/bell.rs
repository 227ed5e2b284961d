//! When the worker looks again, and who may have it look sooner.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tally_core::Catalog;
use tally_core::due::settling;
use tally_core::rows::Partitions;
use tally_core::time::Timestamp;
use tokio::sync::Notify;

use crate::Settled;

/// What the worker and the runner's observer share.
pub struct Bell {
    catalog: Arc<Catalog>,
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

impl Bell {
    /// A bell that nobody has planned anything for.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, plan: Mutex::default(), rings: Notify::new() }
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

    /// To be told of every batch: what it made may be due sooner than the next look.
    pub fn hear(&self, settled: &Settled) {
        let soonest = |plan: Plan| {
            let sooner = settled.due.iter().filter(|due| plan.held.contains(due.partition)).filter_map(|due| {
                let settling = settling(due.kind).filter(|settling| due.at >= settling.from)?;
                Some(settling.by(due.at, &self.catalog))
            });
            sooner.min().filter(|by| *by < plan.by)
        };
        if settled.due.is_empty() {
            return;
        }
        let mut plan = self.lock();
        if let Some(by) = soonest(*plan) {
            plan.by = by;
            self.rings.notify_one();
        }
    }
}
