//! Ranks: as they were loaded, moved by what the batch has changed since. They are shown and never decided on, so nobody
//! holds them against the commit.

use super::{Map, Stop, View};
use crate::rows::{Key, Row, Score, ScoreKey, Standing};

#[derive(Default)]
pub(super) struct Ranks {
    /// How many stood before; none where that was asked for and is not loaded.
    loaded: Map<Standing, Option<u64>>,
    /// Scores that commands of the batch have set, each once.
    touched: Map<ScoreKey, ()>,
}

impl Ranks {
    pub(super) fn touch(&mut self, key: &ScoreKey) {
        self.touched.insert(key.clone(), ());
    }

    /// All that were loaded.
    pub(super) fn known(&self) -> impl Iterator<Item = &Standing> {
        self.loaded.iter().filter(|(_, count)| count.is_some()).map(|(standing, _)| standing)
    }
}

impl View {
    /// Fills in how many stand before a place.
    pub fn fill_rank(&mut self, standing: Standing, before: u64) {
        self.ranks.loaded.insert(standing, Some(before));
    }

    /// How many members stand before a place.
    pub fn before(&mut self, standing: &Standing) -> Result<u64, Stop> {
        let Some(Some(loaded)) = self.ranks.loaded.get(standing).copied() else {
            self.miss_rank(standing);
            return Err(Stop::Miss);
        };
        let stands_before = |key: &ScoreKey, row: &Option<Row>| match row {
            Some(Row::Score(score)) => standing.is_behind(&key.member, *score),
            _ => false,
        };
        let mut before = loaded;
        for key in self.ranks.touched.keys().filter(|key| key.board == standing.board) {
            if let Some(slot) = self.rows.get(&Key::Score(key.clone())) {
                before += u64::from(stands_before(key, &slot.now));
                // It was counted when the rank was loaded, unless another server moved it in between.
                before = before.saturating_sub(u64::from(stands_before(key, &slot.loaded)));
            }
        }
        Ok(before)
    }

    pub(super) fn miss_rank(&mut self, standing: &Standing) {
        if !self.ranks.loaded.contains_key(standing) {
            self.ranks.loaded.insert(standing.clone(), None);
            self.missing.ranks.push(standing.clone());
        }
    }

    /// A score as it is now in this batch, where it is loaded.
    pub fn score_now(&self, key: &ScoreKey) -> Option<Score> {
        match self.rows.get(&Key::Score(key.clone()))?.now {
            Some(Row::Score(score)) => Some(score),
            _ => None,
        }
    }
}
