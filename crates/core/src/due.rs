//! What is done about rows that are due: the one place that says it for every kind.

use crate::catalog::Catalog;
use crate::command::{Command, ExpireJobs, ExpireLimits, ExpireReplays};
use crate::rows::{Key, RowKind};
use crate::time::Timestamp;

/// What is only cleaned up may lie for so long after it is due: then much of it goes in one step.
const CLEANED_WITHIN_MS: u64 = 5_000;

/// How rows of a kind are settled when they are due.
#[derive(Clone, Copy)]
pub struct Settling {
    /// What is due before this is somebody else's work, such as jobs that are open.
    pub from: Timestamp,
    /// So long after [`Row::due`](crate::rows::Row::due).
    pub after_ms: fn(&Catalog) -> u64,
    /// Nobody minds if it is done so much later.
    pub within_ms: u64,
    /// The command. Its rule looks at each of the rows again and at the time: a row that another server has settled meanwhile, or
    /// that is not due any more, is left alone. So whoever sends it need not be the only one, nor be right.
    pub command: fn(Vec<Key>) -> Command,
}

/// How rows of a kind are settled; nothing where they are never due.
pub fn settling(kind: RowKind) -> Option<Settling> {
    let cleaned = |command| Settling { from: Timestamp(1), after_ms: |_| 0, within_ms: CLEANED_WITHIN_MS, command };
    match kind {
        RowKind::Replay => Some(cleaned(|keys| {
            let replay = |key| if let Key::Replay(key) = key { Some(key) } else { None };
            Command::from(ExpireReplays { replays: keys.into_iter().filter_map(replay).collect() })
        })),
        RowKind::Limit => Some(cleaned(|keys| {
            let limit = |key| if let Key::Limit(key) = key { Some(key) } else { None };
            Command::from(ExpireLimits { limits: keys.into_iter().filter_map(limit).collect() })
        })),
        RowKind::Job => {
            let ended = cleaned(|keys| {
                let job = |key| if let Key::Job(id) = key { Some(id) } else { None };
                Command::from(ExpireJobs { jobs: keys.into_iter().filter_map(job).collect() })
            });
            Some(Settling { after_ms: |catalog| catalog.jobs_ttl_ms, ..ended })
        }
        RowKind::Edge
        | RowKind::Object
        | RowKind::Subject
        | RowKind::ApiKey
        | RowKind::Names
        | RowKind::Counter
        | RowKind::Touched
        | RowKind::Unique
        | RowKind::Sheet
        | RowKind::Day
        | RowKind::Chunk
        | RowKind::Attendee
        | RowKind::Board
        | RowKind::Score
        | RowKind::Sequence
        | RowKind::Ticket
        | RowKind::Entry => None,
    }
}

impl Settling {
    /// Rows that are due before this are to be settled now.
    pub fn before(&self, now: Timestamp, catalog: &Catalog) -> Timestamp {
        Timestamp(now.0.saturating_sub((self.after_ms)(catalog)))
    }

    /// By when a row that is due then should be settled.
    pub fn by(&self, due: Timestamp, catalog: &Catalog) -> Timestamp {
        due.plus_ms((self.after_ms)(catalog)).plus_ms(self.within_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_ever_due_is_settled_and_no_other() {
        for kind in RowKind::ALL {
            assert_eq!(settling(kind).is_some(), kind.declared().due.is_some(), "{kind:?}");
        }
    }
}
