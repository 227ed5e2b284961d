//! What is due, soonest first.

use std::collections::BTreeSet;

use redis::Cmd;
use tally_core::rows::{Home, Key, Partitions, Row, RowKind};
use tally_core::time::Timestamp;
use tally_engine::StoreError;

use crate::Redis;
use crate::audit::pairs;
use crate::places::due_key;
use crate::rows::unreadable;

/// Sets that are looked at together.
const SETS_AT_ONCE: usize = 1_024;

/// Redis counts exactly up to this.
const EXACT_MAX: u64 = 1 << 53;

impl Redis {
    /// Rows of a kind in these partitions that are due from a time until before another one.
    pub(crate) async fn due(
        &self,
        kind: RowKind,
        partitions: Partitions,
        (from, before): (Timestamp, Timestamp),
        count: usize,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let least = if from.0 == 0 { "-inf".into() } else { from.0.min(EXACT_MAX).to_string() };
        let most = if before.0 > EXACT_MAX { "+inf".into() } else { format!("({}", before.0) };
        let ask = |set: &String| {
            let mut command = Cmd::new();
            command.arg("ZRANGE").arg(set).arg(&least).arg(&most).arg("BYSCORE");
            command.arg("LIMIT").arg(0).arg(count).arg("WITHSCORES");
            command
        };
        let mut soonest = BTreeSet::new();
        for sets in self.due_sets(kind, partitions).await?.chunks(SETS_AT_ONCE) {
            for due in self.link.send_many(sets.iter().map(ask).collect()).await? {
                for (member, at) in pairs(due)? {
                    let key = due_key(kind, &member).ok_or_else(|| unreadable(&member))?;
                    let at = at.parse::<f64>().map_err(|_| unreadable(&at))? as u64;
                    soonest.insert((at, key));
                }
            }
            while soonest.len() > count {
                soonest.pop_last();
            }
        }
        let mut found = self.rows_of(soonest.into_iter().map(|(_, key)| key).collect()).await?;
        found.retain(|(_, row)| row.due().is_some_and(|at| at >= from && at < before));
        found.sort_by(|(a, left), (b, right)| left.due().cmp(&right.due()).then_with(|| a.cmp(b)));
        Ok(found)
    }

    /// The sets in which rows of a kind and of these partitions may be.
    async fn due_sets(&self, kind: RowKind, partitions: Partitions) -> Result<Vec<String>, StoreError> {
        let home = kind.declared().home;
        if home == Home::Store {
            // One may have been begun by a server that died before it was written here.
            for hash in &self.keys.hashes(kind) {
                self.settle_slot(hash).await?;
            }
        }
        let goes_by_slots = self.keys.slots && matches!(home, Home::With(_));
        let used = if goes_by_slots { self.used_slots().await? } else { Vec::new() };
        let sets = partitions.and(kind.partitions()).iter().flat_map(|partition| {
            let parts = self.keys.due_parts(kind, partition, &used).into_iter();
            parts.map(move |part| self.keys.due(kind, part, partition))
        });
        Ok(sets.collect())
    }
}
