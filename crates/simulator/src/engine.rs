//! What one server sees of the store.

use std::sync::Arc;

use tally::core::rows::Changes;
use tally::core::time::Stamp;
use tally::core::view::Wants;
use tally::engine::{
    Audited, CommitError, Committed, Engine, Finding, Follower, Loaded, Mark, Nature, Page, Range, Seen, StoreError,
};

use crate::clock::SimClock;
use crate::link::Link;
use crate::now;
use crate::store::Store;

/// The store at the end of one server's link.
pub(crate) struct SimEngine {
    pub(crate) store: Arc<Store>,
    pub(crate) link: Arc<Link>,
    pub(crate) clock: SimClock,
    pub(crate) follower: Follower,
}

impl Engine for SimEngine {
    async fn prepare(&self) -> Result<Stamp, StoreError> {
        self.link.call(|| now(self.store.memory.prepare())).await?
    }

    async fn load(&self, wants: &Wants) -> Result<Loaded, StoreError> {
        if !self.store.in_parts {
            return self.link.call(|| self.store.load(wants, &self.clock)).await;
        }
        // One part after another, while others write.
        let mut whole = self.link.call(|| self.store.load(&Wants::default(), &self.clock)).await?;
        whole.rows = vec![None; wants.rows.len()];
        let mut asked = 0;
        for part in 0..self.store.parts() {
            let (wants, places) = self.store.wants_of(part, wants);
            if wants.is_empty() {
                continue;
            }
            asked += 1;
            let loaded = self.link.call(|| self.store.load(&wants, &self.clock)).await?;
            places.into_iter().zip(loaded.rows).for_each(|(place, row)| whole.rows[place] = row);
            whole.totals.extend(loaded.totals);
            whole.ranks.extend(loaded.ranks);
            whole.also.extend(loaded.also);
            whole.now = whole.now.max(loaded.now);
        }
        whole.at_once = asked < 2;
        whole.of_one_moment = whole.at_once;
        Ok(whole)
    }

    async fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        self.link.call(|| self.store.commit(seen, changes)).await?
    }

    async fn settle(&self, _mark: Mark) -> Result<(), StoreError> {
        Ok(())
    }

    async fn scan(&self, range: &Range, limit: usize) -> Result<Page, StoreError> {
        self.link.call(|| now(self.store.memory.scan(range, limit))).await?
    }

    async fn audit(&self, tell: &mut (dyn FnMut(Finding) + Send)) -> Result<Audited, StoreError> {
        self.store.memory.audit(tell).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.link.call(|| ()).await
    }

    fn nature(&self) -> Nature {
        Nature { reading: self.store.reading, is_shared: true, ..Nature::default() }
    }

    fn follower(&self) -> Option<&Follower> {
        Some(&self.follower)
    }
}
