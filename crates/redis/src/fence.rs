//! Nothing is shown that a master's death could take back, where the store's URL asks to wait.
//!
//! What was read may have been written by another server a moment ago, and not be on any replica yet. So whoever
//! answers writes one word to every master and waits until that is as safe as the URL asks for: replicas take
//! everything in order, so what was read is safe then too. Those who ask meanwhile share the next round.

use std::sync::atomic::{AtomicU64, Ordering};

use redis::Value;
use tally_engine::StoreError;
use tokio::sync::Mutex;

use crate::Redis;
use crate::answer::{items, number};
use crate::slots;
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
        if !self.link.options().waits() {
            return Ok(());
        }
        let turn = self.fence.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut answered = self.fence.answered.lock().await;
        if *answered >= turn {
            return Ok(());
        }
        let round = self.fence.asked.load(Ordering::Acquire);
        let slots = if self.keys.slots { self.a_slot_of_every_master().await? } else { vec![0] };
        let asks: Vec<Ask> = slots.iter().map(|slot| Ask::new([self.keys.fence(*slot)], &[])).collect();
        let asking = asks.iter().map(|ask| self.link.run_safely(&self.scripts.fence, ask));
        futures_util::future::try_join_all(asking).await?;
        *answered = round;
        Ok(())
    }

    /// The first slot of each master's first range.
    async fn a_slot_of_every_master(&self) -> Result<Vec<u16>, StoreError> {
        let mut command = redis::Cmd::new();
        command.arg("CLUSTER").arg("SLOTS");
        let mut seen = Vec::new();
        let mut found = Vec::new();
        for range in items(self.link.send(&command).await?)? {
            let mut range = items(range)?.into_iter();
            let first = number(range.next())? as u16 % slots::SLOTS;
            let master = format!("{:?}", range.nth(1).unwrap_or(Value::Nil));
            if !seen.contains(&master) {
                seen.push(master);
                found.push(first);
            }
        }
        Ok(found)
    }
}
