//! What other servers on the same store tell, and what is done about it here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tally_core::rows::TotalKey;
use tally_core::view::Wants;
use tally_core::{Catalog, ObjectId};
use tally_engine::{Engine, News, StoreError};
use tokio::sync::{Notify, watch};

use crate::{AnyEngine, Hub};

/// How soon counts that could not be read are read again.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(500);

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
        // What changed elsewhere and could not be read yet.
        let mut unread = BTreeSet::new();
        loop {
            let news = tokio::select! {
                news = self.engine.news() => Some(news),
                () = tokio::time::sleep(READ_AGAIN_AFTER), if !unread.is_empty() => None,
                _ = stopped.wait_for(|stopped| *stopped) => return,
            };
            self.hear(news, &mut unread).await;
        }
    }

    /// Takes everything that has arrived, so that a count which changed ten times is read once.
    async fn hear(&self, first: Option<News>, unread: &mut BTreeSet<ObjectId>) {
        let mut objects = std::mem::take(unread);
        let mut next = first;
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
        if let Err(error) = self.refresh(&objects).await {
            tracing::warn!(%error, "live counts could not be read; they are read again");
            *unread = objects;
        }
    }

    async fn refresh(&self, objects: &BTreeSet<ObjectId>) -> Result<(), StoreError> {
        let mut totals = Vec::new();
        for (object, relation) in self.hub.watched(objects) {
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
        let wants = Wants::totals(totals);
        let loaded = self.engine.load(&wants).await?;
        let totals: Vec<(TotalKey, i64)> = wants.totals.into_iter().zip(loaded.totals).collect();
        self.hub.publish(&totals);
        Ok(())
    }
}
