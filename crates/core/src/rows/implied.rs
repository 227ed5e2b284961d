//! What follows from a row: when it is due, and which totals it adds to.

use super::{Key, Row, TotalKey};
use crate::day::Day;
use crate::time::Timestamp;

impl Row {
    /// When something is to be done about it because time has passed. 0 is at once, and nothing else is before 1: an open job
    /// is due at once, one that has ended from then on.
    pub fn due(&self) -> Option<Timestamp> {
        let later = |at: Timestamp| at.max(Timestamp(1));
        match self {
            Self::Replay(replay) => Some(later(replay.expires_at)),
            Self::Limit(used) => Some(later(used.look_at)),
            Self::Job(job) => Some(job.finished_at.map_or(Timestamp(0), later)),
            Self::Edge(_)
            | Self::Object(_)
            | Self::Subject(_)
            | Self::ApiKey(_)
            | Self::Names(_)
            | Self::Counter(_)
            | Self::Touched(_)
            | Self::Unique(_)
            | Self::Sheet(_)
            | Self::Day(_)
            | Self::Chunk(_)
            | Self::Attendee(_)
            | Self::Board(_)
            | Self::Score(_)
            | Self::Sequence(_)
            | Self::Ticket(_)
            | Self::Entry(_) => None,
        }
    }

    /// The totals that it adds to, and by how much.
    pub fn counts(&self, key: &Key, mut add: impl FnMut(TotalKey, i64)) {
        match key {
            Key::Edge(key) => self.edge().into_iter().flat_map(|edge| key.totals(edge)).for_each(|total| add(total, 1)),
            Key::Counter(key) => {
                if let Self::Counter(value) = self {
                    add(TotalKey::Counter(key.clone()), *value);
                }
            }
            Key::Attendee(sheet, _) => {
                for day in self.attendee().iter().flat_map(|attendee| attendee.counted().bitmap().clone()) {
                    add(TotalKey::Present { sheet: sheet.clone(), day: Day(day) }, 1);
                }
            }
            Key::Object(_)
            | Key::Subject(_)
            | Key::Replay(_)
            | Key::Job(_)
            | Key::ApiKey(_)
            | Key::Touched(_)
            | Key::Unique(_)
            | Key::Limit(_)
            | Key::Sheet(_)
            | Key::Day(..)
            | Key::Chunk(_)
            | Key::Board(_)
            | Key::Score(_)
            | Key::Names
            | Key::Sequence(_)
            | Key::Ticket(_)
            | Key::Entry(_) => {}
        }
    }
}
