//! What is due, soonest first.

use std::collections::BTreeSet;

use redis::Cmd;
use tally_core::rows::{Home, Key, Row, RowKind};
use tally_core::time::Timestamp;
use tally_engine::StoreError;

use crate::Redis;
use crate::audit::pairs;
use crate::places::due_key;
use crate::rows::unreadable;

/// Slots that are looked at together.
const SLOTS_AT_ONCE: usize = 1_024;

/// Redis counts exactly up to this.
const EXACT_MAX: u64 = 1 << 53;

impl Redis {
    /// Rows of a kind that are due in a time.
    pub(crate) async fn due(
        &self,
        kind: RowKind,
        from: Timestamp,
        before: Timestamp,
        count: usize,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let least = if from.0 == 0 { "-inf".into() } else { from.0.min(EXACT_MAX).to_string() };
        let most = if before.0 > EXACT_MAX { "+inf".into() } else { format!("({}", before.0) };
        let ask = |part: &u16| {
            let mut command = Cmd::new();
            command.arg("ZRANGE").arg(self.keys.due(kind, *part)).arg(&least).arg(&most).arg("BYSCORE");
            command.arg("LIMIT").arg(0).arg(count).arg("WITHSCORES");
            command
        };
        let mut soonest = BTreeSet::new();
        for parts in self.parts_of(kind).await?.chunks(SLOTS_AT_ONCE) {
            for due in self.link.send_many(parts.iter().map(ask).collect()).await? {
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

    /// The slots in which rows of a kind may be.
    async fn parts_of(&self, kind: RowKind) -> Result<Vec<u16>, StoreError> {
        let hashes = self.keys.hashes(kind);
        if kind.declared().home == Home::Store {
            // One may have been begun by a server that died before it was written here.
            for hash in &hashes {
                self.settle_slot(hash).await?;
            }
        }
        if !self.keys.slots {
            return Ok(vec![0]);
        }
        if hashes.is_empty() {
            return self.used_slots().await;
        }
        let parts: BTreeSet<u16> = hashes.iter().map(|hash| self.keys.part(hash)).collect();
        Ok(parts.into_iter().collect())
    }
}
