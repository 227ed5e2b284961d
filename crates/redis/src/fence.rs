//! Nothing is shown that a master's death could take back, where the store's URL asks to wait.
//!
//! What was read may have been written by another server a moment ago, and not be on any replica yet. So whoever
//! answers writes one word and waits until that is as safe as the URL asks for: replicas take everything in order, so
//! what was read is safe then too. Those who ask meanwhile share the next round. On one node only: on a Cluster a write waits
//! for its own slots, and a read does not wait.

use std::sync::atomic::{AtomicU64, Ordering};

use tally_engine::StoreError;
use tokio::sync::Mutex;

use crate::Redis;
use crate::words::Ask;

#[derive(Default)]
pub(crate) struct Fence {
    asked: AtomicU64,
    /// The last of those who asked that a round was for.
    answered: Mutex<u64>,
}

impl Redis {
    /// Waits until everything that can be read now is safe.
    pub(crate) async fn fence(&self) -> Result<(), StoreError> {
        // On a Cluster one master without a replica would keep everybody from reading anything of the others.
        if self.keys.slots || !self.link.options().waits() {
            return Ok(());
        }
        let turn = self.fence.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut answered = self.fence.answered.lock().await;
        if *answered >= turn {
            return Ok(());
        }
        let round = self.fence.asked.load(Ordering::Acquire);
        self.link.run_safely(&self.scripts.fence, &Ask::new([self.keys.system("fence")], &[])).await?;
        *answered = round;
        Ok(())
    }
}
