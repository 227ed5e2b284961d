//! Commits over several slots that were not finished: whoever meets one ends it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Cmd;
use tally_engine::StoreError;
use tokio::time::sleep;

use crate::Redis;
use crate::answer::{items, number, some_text, texts};
use crate::words::Ask;

/// After this a commit that was prepared and not decided counts as left behind. Calling it off is safe at any
/// time: a server that is only slow is told so, and decides again.
const LEFT_AFTER_MS: i64 = 500;
/// How long to wait for who holds something.
const STEP_ASIDE: Duration = Duration::from_millis(10);
/// How often to try to finish what could not be reached.
const FINISH_EVERY: Duration = Duration::from_millis(500);
/// Slots that are looked at together.
const SLOTS_AT_ONCE: usize = 256;

/// One slot's share of a commit.
struct Share {
    transaction: String,
    record: String,
    age_ms: i64,
    keys: Vec<String>,
}

impl Redis {
    /// Ends what can be ended in a slot. True if something was put in place that was not there before.
    pub(crate) async fn resolve(&self, slot: u16) -> Result<bool, StoreError> {
        let mut moved = false;
        for share in self.peek(slot).await? {
            let done = match self.verdict(&share.record, "ask").await?.as_str() {
                "" if share.age_ms < LEFT_AFTER_MS => continue,
                "" => !self.cancel(&share.record).await?,
                state => state == "done",
            };
            // The first key is that of the slot itself.
            let keys = share.keys.into_iter().skip(1);
            self.finish(slot, keys, &share.transaction, done).await?;
            moved |= done;
        }
        Ok(moved)
    }

    async fn peek(&self, slot: u16) -> Result<Vec<Share>, StoreError> {
        let found = self.link.run(&self.scripts.peek, &Ask::new([self.keys.open(slot)], &[])).await?;
        items(found)?
            .into_iter()
            .map(|share| {
                let mut share = items(share)?.into_iter();
                Ok(Share {
                    transaction: some_text(share.next())?,
                    record: some_text(share.next())?,
                    age_ms: number(share.next())?,
                    keys: texts(share.next().unwrap_or(redis::Value::Nil))?,
                })
            })
            .collect()
    }

    /// Something here is held by another commit: ends it if it was left behind, or lets it pass.
    pub(crate) async fn step_aside(&self, slot: u16) {
        if let Err(error) = self.resolve(slot).await {
            tracing::debug!(%error, slot, "what is open in a slot cannot be looked at");
        }
        sleep(STEP_ASIDE).await;
    }

    /// Finishes what could not be reached when its commit was made.
    pub(crate) async fn finish_later(self, mut left: Vec<(u16, Vec<String>)>, transaction: String, record: String) {
        while !left.is_empty() {
            sleep(FINISH_EVERY).await;
            let mut still = Vec::new();
            for (slot, keys) in left {
                match self.finish(slot, keys.iter().cloned(), &transaction, true).await {
                    Ok(_) => _ = self.unfinished.fetch_sub(1, Ordering::Relaxed),
                    Err(_) => still.push((slot, keys)),
                }
            }
            left = still;
        }
        self.forget(&record).await;
    }

    /// Ends everything that was left behind, in every slot. Says how many slots had something.
    pub(crate) async fn resolve_all(&self) -> Result<usize, StoreError> {
        if !self.keys.slots {
            return Ok(0);
        }
        let mut found = 0;
        for slots in self.used_slots().await?.chunks(SLOTS_AT_ONCE) {
            let looking = slots.iter().map(|slot| async move {
                let mut command = Cmd::new();
                command.arg("EXISTS").arg(self.keys.open(*slot));
                Ok::<_, StoreError>((*slot, number(Some(self.link.send(&command).await?))? == 1))
            });
            for looked in futures_util::future::join_all(looking).await {
                let (slot, open) = looked?;
                if open {
                    found += 1;
                    self.resolve(slot).await?;
                }
            }
        }
        Ok(found)
    }
}
