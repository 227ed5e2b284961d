//! Pages of boards.

use tally_core::rows::{BoardKey, Key, Row, ScoreKey};
use tally_engine::{BoardFrom, StoreError};

use crate::Redis;
use crate::answer::{items, some_text};
use crate::orders::{element, member_of, order_score};
use crate::words::Ask;

impl Redis {
    /// Members of a board, in order.
    pub(crate) async fn board(
        &self,
        board: &BoardKey,
        from: &BoardFrom,
        count: usize,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let order = self.keys.order(board);
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
}
