//! Pages of orders.

use tally_core::rows::{Key, OrderKey, Row};
use tally_engine::{OrderFrom, StoreError};

use crate::Redis;
use crate::answer::{items, some_text};
use crate::orders::{element, order_score, place_of};
use crate::rows::{self, unreadable};
use crate::words::Ask;

impl Redis {
    /// Rows of an order. Those of which the place does not say everything come along, as of the same moment.
    pub(crate) async fn order_page(
        &self,
        key: &OrderKey,
        from: &OrderFrom,
        count: usize,
    ) -> Result<Vec<(Key, Row)>, StoreError> {
        let (order, hash) = (self.keys.order(key), self.keys.hash_of(key));
        let slot = self.keys.part(&order);
        let slots = if self.keys.slots { "1" } else { "0" };
        let count_text = count.to_string();
        let words: [&str; 5] = match from {
            OrderFrom::Rank(first) => {
                // Nobody stands so far behind, and a script cannot count further.
                let first = (*first).min(1 << 53);
                let last = first.saturating_add(count as u64 - 1);
                [slots, "rank", &first.to_string(), &last.to_string(), ""]
            }
            OrderFrom::Behind(place) => [slots, "behind", &count_text, &order_score(place.score), &element(place)],
            OrderFrom::Ahead(place) => [slots, "ahead", &count_text, &order_score(place.score), &element(place)],
        };
        let ask = match key.kind().is_its_place() {
            true => Ask::new(vec![self.keys.open(slot), order], &words),
            false => Ask::new(vec![self.keys.open(slot), order, hash], &words),
        };
        loop {
            let mut values = items(self.link.run(&self.scripts.order, &ask).await?)?.into_iter();
            if self.is_stale(slot, values.next()).await? {
                continue;
            }
            let mut page = Vec::with_capacity(count);
            while let Some(element) = values.next() {
                let (element, score) = (some_text(Some(element))?, some_text(values.next())?);
                let place = place_of(&element, &score)?;
                let row_key = key.key(&place.id).ok_or_else(|| unreadable(&element))?;
                let row = match key.row(&place) {
                    Some(row) => row,
                    None => rows::row(&row_key, &some_text(values.next())?)?,
                };
                page.push((row_key, row));
            }
            return Ok(page);
        }
    }
}
