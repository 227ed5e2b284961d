//! Pages of boards, and limits that are due.

use std::collections::BTreeSet;

use redis::Cmd;
use tally_core::rows::{BoardKey, Key, Row, ScoreKey};
use tally_core::rules::limit;
use tally_core::time::Timestamp;
use tally_engine::{BoardFrom, StoreError};

use crate::Redis;
use crate::answer::{items, some_text};
use crate::audit::pairs;
use crate::counting::{element, limit_of, member_of, order_score};
use crate::rows::unreadable;
use crate::words::Ask;

/// Slots that are looked at together.
const SLOTS_AT_ONCE: usize = 1_024;

impl Redis {
    /// Members of a board, in order.
    pub(crate) async fn board(
        &self,
        board: &BoardKey,
        from: &BoardFrom,
        count: usize,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let order = self.keys.board(board).order;
        let slot = self.keys.part(&order);
        let slots = if self.keys.slots { "1" } else { "0" };
        let count_text = count.to_string();
        let words: [&str; 5] = match from {
            BoardFrom::Rank(first) => {
                // Nobody stands so far behind, and a script cannot count further.
                let first = (*first).min(1 << 53);
                let last = first.saturating_add(count as u64 - 1);
                [slots, "rank", &first.to_string(), &last.to_string(), ""]
            }
            BoardFrom::Behind(member, score) => {
                [slots, "behind", &count_text, &order_score(score.score), &element(score.reached, member)]
            }
            BoardFrom::Ahead(member, score) => {
                [slots, "ahead", &count_text, &order_score(score.score), &element(score.reached, member)]
            }
        };
        let ask = Ask::new([self.keys.open(slot), order], &words);
        loop {
            let mut values = items(self.link.run(&self.scripts.board, &ask).await?)?.into_iter();
            if self.is_stale(slot, values.next()).await? {
                continue;
            }
            let mut page = Vec::with_capacity(values.len() / 2);
            while let Some(element) = values.next() {
                let (member, score) = member_of(&some_text(Some(element))?, &some_text(values.next())?)?;
                page.push((Key::Score(ScoreKey { board: board.clone(), member }), Row::Score(score)));
            }
            return Ok(page);
        }
    }

    /// Limits that were to be looked at before a time, soonest first.
    pub(crate) async fn limits(&self, before: Timestamp, count: usize) -> Result<Vec<(Key, Row)>, StoreError> {
        let most = if before.0 > 1 << 53 { "+inf".into() } else { format!("({}", before.0) };
        let parts = if self.keys.slots { self.used_slots().await? } else { vec![0] };
        let ask = |part: &u16| {
            let mut command = Cmd::new();
            command.arg("ZRANGE").arg(self.keys.limits_due(*part)).arg("-inf").arg(&most).arg("BYSCORE");
            command.arg("LIMIT").arg(0).arg(count).arg("WITHSCORES");
            command
        };
        let mut soonest = BTreeSet::new();
        for parts in parts.chunks(SLOTS_AT_ONCE) {
            for due in self.link.send_many(parts.iter().map(ask).collect()).await? {
                for (member, at) in pairs(due)? {
                    let key = limit_of(&member).ok_or_else(|| unreadable(&member))?;
                    let at = at.parse::<f64>().map_err(|_| unreadable(&at))? as u64;
                    soonest.insert((at, Key::Limit(key)));
                }
            }
            while soonest.len() > count {
                soonest.pop_last();
            }
        }
        let mut found = self.rows_of(soonest.into_iter().map(|(_, key)| key).collect()).await?;
        found.retain(|(_, row)| limit::look_at(row).is_some_and(|at| at < before));
        found.sort_by(|(a, left), (b, right)| limit::look_at(left).cmp(&limit::look_at(right)).then_with(|| a.cmp(b)));
        Ok(found)
    }
}
