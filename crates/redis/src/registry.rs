//! What there is, so that it can be walked through: names of relations, and slots that hold anything.
//!
//! Written down before the first commit that needs it, and known from then on.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use redis::Cmd;
use tally_core::Name;
use tally_engine::StoreError;

use crate::Redis;
use crate::answer::{text, texts};
use crate::plan::Plan;
use crate::slots::SLOTS;
use crate::words::Ask;

/// What this server knows to be written down.
#[derive(Default)]
pub(crate) struct Registry {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    relations: BTreeSet<Name>,
    slots: BTreeSet<u16>,
    /// When all of it was last written down.
    written: Option<Instant>,
}

/// A node that took over from another may have lost what is known here, so all of it is written down again
/// this often.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

impl Redis {
    /// Makes sure that what a commit uses is written down.
    pub(crate) async fn register(&self, plan: &Plan<'_>) -> Result<(), StoreError> {
        let (relations, slots): (Vec<Name>, Vec<u16>) = {
            let Ok(mut known) = self.registry.known.lock() else { return Ok(()) };
            if known.written.get_or_insert_with(Instant::now).elapsed() > AGAIN_AFTER {
                known.written = Some(Instant::now());
                tokio::spawn(self.clone().register_again());
            }
            let relations = plan.relations.difference(&known.relations).cloned().collect();
            (relations, plan.slots.difference(&known.slots).copied().collect())
        };
        if relations.is_empty() && slots.is_empty() {
            return Ok(());
        }
        self.write_down(&relations, &slots).await?;
        if let Ok(mut known) = self.registry.known.lock() {
            known.relations.extend(relations);
            known.slots.extend(slots);
        }
        Ok(())
    }

    async fn write_down(&self, relations: &[Name], slots: &[u16]) -> Result<(), StoreError> {
        let mut ask = Ask::new([self.keys.system("relations"), self.keys.system("slots")], &[]);
        ask.words.number(relations.len());
        relations.iter().for_each(|name| ask.words.push(name.as_str()));
        slots.iter().for_each(|slot| ask.words.number(usize::from(*slot)));
        self.link.run_safely(&self.scripts.register, &ask).await?;
        Ok(())
    }

    async fn register_again(self) {
        let (relations, slots): (Vec<Name>, Vec<u16>) = {
            let Ok(known) = self.registry.known.lock() else { return };
            (known.relations.iter().cloned().collect(), known.slots.iter().copied().collect())
        };
        if let Err(error) = self.write_down(&relations, &slots).await {
            tracing::warn!(%error, "the names of relations and slots are written down again later");
        }
    }

    /// What other servers have written down need not be written by this one.
    pub(crate) async fn learn(&self) -> Result<(), StoreError> {
        let (relations, slots) = (self.relations().await?, self.used_slots().await?);
        if let Ok(mut known) = self.registry.known.lock() {
            known.relations.extend(relations);
            known.slots.extend(slots);
        }
        Ok(())
    }

    /// Every relation that ever had an edge, by name.
    pub(crate) async fn relations(&self) -> Result<BTreeSet<Name>, StoreError> {
        let mut command = Cmd::new();
        command.arg("SMEMBERS").arg(self.keys.system("relations"));
        let names = texts(self.link.send(&command).await?)?;
        Ok(names.iter().filter_map(|name| Name::new(name).ok()).collect())
    }

    /// Every slot that ever held anything.
    pub(crate) async fn used_slots(&self) -> Result<Vec<u16>, StoreError> {
        let mut command = Cmd::new();
        command.arg("GET").arg(self.keys.system("slots"));
        let bits = match self.link.send(&command).await? {
            redis::Value::BulkString(bits) => bits,
            other => text(other)?.unwrap_or_default().into_bytes(),
        };
        let is_set = |slot: &u16| bits.get(usize::from(slot / 8)).is_some_and(|byte| byte & (0x80 >> (slot % 8)) != 0);
        Ok((0..SLOTS).filter(is_set).collect())
    }
}
