//! Old counters that stand alone: Redis keeps no empty set, but the counter beside it may not be at zero.

use tally::core::ObjectId;

use super::finding::Subtotal;
use super::source::{Counter, Counts};
use super::state::Pass;
use super::work::Work;
use crate::failure::Failure;

impl Work<'_> {
    /// One step through the counters. Says whether any fitted.
    pub(super) async fn step_counters(&mut self) -> Result<bool, Failure> {
        let Some(counts) = &self.plan.counts else {
            self.at.pass = Pass::Done;
            return Ok(false);
        };
        let (cursor, mut keys) = self.source.scan(self.at.shard, self.at.cursor, &counts.glob()).await?;
        keys.sort_unstable();
        keys.dedup();
        // What is no object was refused with its set, or has none.
        let found = keys.iter().filter_map(|key| self.plan.object_of(counts.id_in(key)?).ok());
        let found: Vec<(String, ObjectId)> = found.collect();
        let pairs: Vec<_> = found.iter().map(|(id, _)| (self.plan.sets.with(id), counts.with(id))).collect();
        let alone = self.source.counters_alone(&pairs).await?;
        let mut whole = Vec::new();
        for ((key, _), ((_, object), counter)) in pairs.iter().zip(found.iter().zip(alone)) {
            // Nothing is what an empty set and a zero agree on.
            if let Some(counter) = counter.filter(|counter| matches!(counter, Counter::Number(number) if *number != 0))
            {
                whole.push((Subtotal::of(key, object), Counts { members: 0, counter }));
            }
        }
        self.close(whole).await?;
        self.go_on_at(cursor);
        Ok(!keys.is_empty())
    }
}
