//! What there is, so that it can be walked through: names of relations, and slots that hold anything.
//!
//! Written down before the first commit that needs it, and known from then on.

use std::collections::BTreeSet;
use std::sync::Mutex;

use redis::Cmd;
use tally_core::Name;
use tally_engine::StoreError;

use crate::Redis;
use crate::answer::{text, texts};
use crate::connection::Ask;
use crate::plan::Plan;
use crate::slots::SLOTS;

/// What this server knows to be written down.
#[derive(Default)]
pub(crate) struct Registry {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    relations: BTreeSet<Name>,
    slots: BTreeSet<u16>,
}

impl Redis {
    /// Makes sure that what a commit uses is written down.
    pub(crate) async fn register(&self, plan: &Plan<'_>) -> Result<(), StoreError> {
        let (relations, slots): (Vec<Name>, Vec<u16>) = {
            let Ok(known) = self.registry.known.lock() else { return Ok(()) };
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

    /// Writes everything that is known down again: a node that took over may have lost it.
    pub(crate) async fn register_again(&self) -> Result<(), StoreError> {
        let (relations, slots): (Vec<Name>, Vec<u16>) = {
            let Ok(known) = self.registry.known.lock() else { return Ok(()) };
            (known.relations.iter().cloned().collect(), known.slots.iter().copied().collect())
        };
        if relations.is_empty() && slots.is_empty() { Ok(()) } else { self.write_down(&relations, &slots).await }
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
