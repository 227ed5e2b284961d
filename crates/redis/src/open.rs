//! Commits over several slots that were not finished: whoever meets one ends it.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::try_join_all;
use redis::{Cmd, Value};
use tally_engine::StoreError;
use tokio::time::sleep;

use crate::Redis;
use crate::answer::{items, number, some_text, texts};
use crate::commit::Named;
use crate::words::Ask;

/// After this a commit that was prepared and not decided counts as left behind. Calling it off is safe at any
/// time: a server that is only slow is told so, and decides again.
const LEFT_AFTER_MS: i64 = 500;
/// How often to try to finish what could not be reached.
const FINISH_EVERY: Duration = Duration::from_millis(500);
/// Slots that are looked at together.
const SLOTS_AT_ONCE: usize = 256;

/// A commit that is open in a slot.
struct Open {
    commit: String,
    record: String,
    age_ms: i64,
}

fn open(value: Value) -> Result<Open, StoreError> {
    let mut open = items(value)?.into_iter();
    Ok(Open { commit: some_text(open.next())?, record: some_text(open.next())?, age_ms: number(open.next())? })
}

impl Redis {
    /// Ends what can be ended in a slot. True if something was put in place that was not there before.
    pub(crate) async fn resolve(&self, slot: u16) -> Result<bool, StoreError> {
        let found = self.link.run(&self.scripts.opened, &Ask::new([self.keys.open(slot)], &[])).await?;
        self.is_stale(slot, Some(found)).await
    }

    /// Puts what was decided in its place before a key is read that no load reads.
    pub(crate) async fn settle_slot(&self, key: &str) -> Result<(), StoreError> {
        if self.keys.slots {
            self.resolve(self.keys.part(key)).await?;
        }
        Ok(())
    }

    /// Something was read while this was open in its slot: ends what can be ended. True if one of them had been decided by
    /// then, so that what was read is without something that was done.
    pub(crate) async fn is_stale(&self, slot: u16, opened: Option<Value>) -> Result<bool, StoreError> {
        let opened: Result<Vec<Open>, StoreError> =
            items(opened.unwrap_or(Value::Nil))?.into_iter().map(open).collect();
        let fates = opened?.into_iter().map(|open| async move {
            let named = Named::of(&open.record);
            let done = match self.verdict(&named, "ask").await?.as_str() {
                "" if open.age_ms < LEFT_AFTER_MS => return Ok(None),
                "" => !self.cancel(&named).await?,
                state => state == "done",
            };
            Ok::<_, StoreError>(Some((open.commit, done)))
        });
        let ended: Vec<(String, bool)> = try_join_all(fates).await?.into_iter().flatten().collect();
        let stale = ended.iter().any(|(_, done)| *done);
        self.end(slot, &ended).await?;
        Ok(stale)
    }

    /// Ends shares in a slot, as far as nobody else has.
    async fn end(&self, slot: u16, ended: &[(String, bool)]) -> Result<(), StoreError> {
        if ended.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = ended.iter().map(|(commit, _)| commit.as_str()).collect();
        let found = self.link.run(&self.scripts.peek, &Ask::new([self.keys.open(slot)], &names)).await?;
        for ((commit, done), keys) in ended.iter().zip(items(found)?) {
            // The first keys are those of the slot itself.
            let keys = texts(keys)?;
            if !keys.is_empty() {
                self.finish(slot, keys.into_iter().skip(2), commit, *done, 0).await?;
            }
        }
        Ok(())
    }

    /// Something here is held by another commit: ends it if it was left behind, or lets it pass.
    pub(crate) async fn step_aside(&self, slot: u16, pause: Duration) {
        if let Err(error) = self.resolve_old(slot).await {
            tracing::debug!(%error, slot, "what is open in a slot cannot be looked at");
        }
        sleep(pause).await;
    }

    /// Ends what was left behind. Whoever is young ends by itself, and need not be asked for.
    async fn resolve_old(&self, slot: u16) -> Result<(), StoreError> {
        let found = self.link.run(&self.scripts.opened, &Ask::new([self.keys.open(slot)], &[])).await?;
        let mut old = Vec::new();
        for value in items(found)? {
            if open(value.clone())?.age_ms >= LEFT_AFTER_MS {
                old.push(value);
            }
        }
        self.is_stale(slot, Some(Value::Array(old))).await?;
        Ok(())
    }

    /// A while that differs from one to the next, so that those who met do not meet again.
    pub(crate) fn jitter(&self, tries: u32) -> Duration {
        let random = RandomState::new().hash_one(tries);
        Duration::from_micros(500 + random % (2_000 << tries.min(4)))
    }

    /// Finishes what could not be reached when its commit was made.
    pub(crate) async fn finish_later(self, mut left: Vec<(u16, Vec<String>)>, transaction: String, record: String) {
        while !left.is_empty() {
            sleep(FINISH_EVERY).await;
            let mut still = Vec::new();
            for (slot, keys) in left {
                match self.finish(slot, keys.iter().cloned(), &transaction, true, 0).await {
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
