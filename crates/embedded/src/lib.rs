//! The default store: one folder, no other service.
//!
//! [`store`] keeps ordered bytes safe; the rest of this crate lays typed rows out in them. Nothing
//! here knows what a like is.

mod agree;
mod audit;
mod cells;
mod codec;
mod commit;
mod keys;
mod mend;
mod ordered;
#[cfg(test)]
mod ordered_tests;
mod orders;
mod places;
mod scan;
pub mod store;
#[cfg(test)]
mod taken_back;

use std::path::Path;
use std::sync::Mutex;

use orders::Orders;
use tally_core::rows::{Changes, OrderKey};
use tally_core::time::Stamp;
use tally_core::view::Wants;
use tally_engine::{
    Audited, CommitError, Committed, Engine, Finding, Loaded, Mark, Mend, OrderFrom, Page, Range, Seen, StoreError,
};

pub use store::{BackupReport, CheckReport, Options, Stats, Sync};
use store::{Batch, Store};

/// How often a load is tried while others commit, before it keeps them from it.
const READS_BESIDE_COMMITS: usize = 8;

/// The embedded engine.
pub struct Embedded {
    store: Store,
    orders: Orders,
    /// Held while a commit compares what was decided on with what is there. Its batch is reused.
    committing: Mutex<Batch>,
}

impl Embedded {
    /// Opens the folder, and creates it where there is none.
    pub fn open(folder: &Path, options: Options) -> Result<Self, store::StoreError> {
        Ok(Self { store: Store::open(folder, options)?, orders: Orders::default(), committing: Mutex::default() })
    }

    /// Waits until these orders are in memory.
    async fn orders_read(&self, orders: &[&OrderKey]) -> Result<(), StoreError> {
        let alone = |take: &dyn Fn() -> store::Snapshot| {
            let _nobody_commits = self.committing();
            take()
        };
        if orders.is_empty() { Ok(()) } else { self.orders.ready(&self.store, orders, alone).await }
    }

    async fn order_page(&self, order: &OrderKey, from: &OrderFrom, limit: usize) -> Result<Page, StoreError> {
        let mut again = 0;
        loop {
            self.orders_read(&[order]).await?;
            let alone = (again >= READS_BESIDE_COMMITS).then(|| self.committing());
            let before = self.store.moment();
            let found = self.orders.page(&self.store, order, from, limit.saturating_add(1), before.taken_back)?;
            let (Some(found), Some(mark)) = (found, commit::mark_of(before, self.store.moment())) else { continue };
            let more = found.len() > limit;
            let items = found.into_iter().take(limit).map(|(key, row)| Some((key, row?)));
            match items.collect() {
                Some(items) => return Ok(Page { items, more, mark }),
                None if alone.is_some() => {
                    return Err(StoreError::Broken(format!("a place in {order:?} has no row")));
                }
                // A row has moved since its place was read.
                None => again += 1,
            }
        }
    }

    /// The bytes underneath: backup, checks, figures.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// Turns the store's error into what the runner understands.
fn unavailable(error: store::StoreError) -> StoreError {
    if error.is_transient() {
        StoreError::Unavailable(error.to_string())
    } else {
        StoreError::Broken(error.to_string())
    }
}

impl Engine for Embedded {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        match self.store.get(&keys::stamp()).map_err(unavailable)? {
            Some(bytes) => codec::read_stamp(&bytes),
            None => Ok(Stamp::default()),
        }
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        let one = wants.rows.len() + wants.totals.len() + wants.ranks.len() < 2;
        let mut again = 0;
        loop {
            let orders: Vec<&OrderKey> = wants.ranks.iter().map(|standing| &standing.order).collect();
            self.orders_read(&orders).await?;
            // Somebody commits all the time: now nobody does.
            let alone = (again >= READS_BESIDE_COMMITS).then(|| self.committing());
            let whole = |mark| one || alone.is_some() || commit::is_of_one(mark);
            if let Some(loaded) = self.read_rows(wants)?.filter(|loaded| whole(loaded.mark)) {
                return Ok(loaded);
            }
            again += 1;
        }
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        // Waits for room here and not before a load: reads go on when the store takes no writes.
        self.store.ready().await.map_err(unavailable)?;
        self.write_rows(&seen, changes)
    }

    async fn settle(&self, mark: Mark) -> Result<(), StoreError> {
        self.store.wait(commit::position_of(mark)).await.map_err(unavailable)
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        if let Range::Order { order, from } = range {
            return self.order_page(order, from, limit).await;
        }
        scan::scan(&self.store, range, limit)
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        let (snapshot, orders) = {
            // So that what is in memory and what is in the tables are of one moment.
            let _nobody_commits = self.committing();
            let snapshot = self.store.snapshot();
            let orders = self.orders.sums(snapshot.taken_back());
            (snapshot, orders)
        };
        audit::audit(&snapshot, orders, tell)
    }

    async fn mend(&self, what: &Mend) -> Result<bool, StoreError> {
        match what {
            Mend::Lists(edge) => self.mend_edge(edge).await,
            // A total is one row.
            Mend::Leftover(_) => Ok(false),
            Mend::Order(order) => self.mend_order(order).await,
        }
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.store.ready().await.map_err(unavailable)
    }
}
