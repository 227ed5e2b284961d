//! What other servers on the same store tell, and what is done about it here.

use std::collections::BTreeSet;
use std::sync::Arc;

use tally_core::rows::TotalKey;
use tally_core::view::Wants;
use tally_core::{Catalog, ObjectId};
use tally_engine::{Engine, News, StoreError};
use tokio::sync::{Notify, watch};

use crate::{AnyEngine, Hub};

/// Listens to other servers.
pub(crate) struct Follower {
    pub(crate) engine: Arc<AnyEngine>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) new_job: Arc<Notify>,
    pub(crate) new_keys: Arc<Notify>,
}

impl Follower {
    /// Listens until it is stopped.
    pub(crate) async fn run(self, mut stopped: watch::Receiver<bool>) {
        loop {
            let news = tokio::select! {
                news = self.engine.news() => news,
                _ = stopped.wait_for(|stopped| *stopped) => return,
            };
            self.hear(news).await;
        }
    }

    /// Takes everything that has arrived, so that a count which changed ten times is read once.
    async fn hear(&self, first: News) {
        let mut objects = BTreeSet::new();
        let mut next = Some(first);
        while let Some(news) = next {
            match news {
                News::Counts(changed) => objects.extend(changed),
                News::Keys => self.new_keys.notify_one(),
                News::Jobs => self.new_job.notify_one(),
                News::Anything => {
                    self.new_keys.notify_one();
                    self.new_job.notify_one();
                    objects.extend(self.hub.objects());
                }
            }
            next = tokio::select! {
                biased;
                news = self.engine.news() => Some(news),
                () = std::future::ready(()) => None,
            };
        }
        if let Err(error) = self.refresh(objects).await {
            // The connection that failed tells of anything when it is back.
            tracing::warn!(%error, "live counts could not be read");
        }
    }

    async fn refresh(&self, objects: BTreeSet<ObjectId>) -> Result<(), StoreError> {
        let mut totals = Vec::new();
        for (object, relation) in self.hub.watched(&objects) {
            let kinds = self.catalog.relation(&relation).map(|found| found.one_of.clone()).unwrap_or_default();
            let kinds = kinds.into_iter().map(|kind| {
                let (object, relation) = (object.clone(), relation.clone());
                TotalKey::Kind { object, relation, kind }
            });
            totals.extend(kinds);
            totals.push(TotalKey::Object { object, relation });
        }
        if totals.is_empty() {
            return Ok(());
        }
        let wants = Wants { rows: Vec::new(), totals };
        let loaded = self.engine.load(&wants).await?;
        let totals: Vec<(TotalKey, i64)> = wants.totals.into_iter().zip(loaded.totals).collect();
        self.hub.publish(&totals);
        Ok(())
    }
}
