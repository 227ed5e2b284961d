//! Witnesses: a few of the edges that an import has made. When it goes on after a stop, they say whether the target still
//! is what it was. One that was emptied, or put back to an older backup, has lost them; then all of it is read again.

use serde::{Deserialize, Serialize};
use tally::core::{ObjectId, SubjectId};

use super::edges::Edges;
use crate::failure::Failure;

/// So many from all over the import, and so many of the newest.
const WITNESSES: usize = 16;

/// Some of the edges that were made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Witnesses {
    spread: Vec<(ObjectId, SubjectId)>,
    newest: Vec<(ObjectId, SubjectId)>,
    /// Batches that were noted.
    batches: u64,
}

impl Witnesses {
    /// Notes one edge of a batch.
    pub(super) fn note(&mut self, edge: &(ObjectId, SubjectId)) {
        if self.newest.len() == WITNESSES {
            self.newest.remove(0);
        }
        self.newest.push(edge.clone());
        self.batches += 1;
        if self.spread.len() == WITNESSES && self.batches.is_power_of_two() {
            // Every second of them goes, so that what follows finds room and all of the import has its witnesses.
            let mut place = 0;
            self.spread.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
        if self.spread.len() < WITNESSES {
            self.spread.push(edge.clone());
        }
    }

    /// Whether the target has lost them: half of either or more. Single ones may have been taken away by their subjects.
    pub(super) async fn are_gone(&self, edges: &Edges<'_>) -> Result<bool, Failure> {
        for some in [&self.newest, &self.spread] {
            let mut gone = 0;
            for (object, subject) in some {
                gone += usize::from(!edges.has(object, subject).await?);
            }
            if gone * 2 >= some.len().max(1) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
