//! The rows of boards: scores, and places among them.

use serde::{Deserialize, Serialize};

use crate::id::{Name, SubjectId};
use crate::time::{Stamp, Timestamp};

/// Names a board in one of its seasons.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct BoardKey {
    /// The board.
    pub board: Name,
    /// When the season began; 0 for a board without seasons.
    pub season: Timestamp,
    /// Not the members but the different scores that they have, each once: what `dense` ranks count.
    pub levels: bool,
}

/// What is known of a board beyond its scores.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Board {
    /// When each season began, the newest last.
    pub seasons: Vec<Timestamp>,
    /// Whether the different scores are counted beside the members, as `dense` ranks need it. From the first score on.
    pub dense: bool,
}

/// Names a member's score.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ScoreKey {
    /// The board.
    pub board: BoardKey,
    /// The member.
    pub member: SubjectId,
}

/// A member's score. Higher ones stand first; of equal ones, those that were reached first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Score {
    /// The score, between plus and minus [`crate::limits::SCORE_MAX`].
    pub score: i64,
    /// When it was reached. In a board of levels: how many members have it.
    pub reached: Stamp,
}

/// A place in the order of a board. A store is asked how many members stand before it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Standing {
    /// The board.
    pub board: BoardKey,
    /// The score.
    pub score: i64,
    /// Where among those with this score.
    pub among: Among,
}

/// A place among members with one score.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Among {
    /// Before all of them.
    First,
    /// Behind all of them.
    Last,
    /// Where this one stands, or would.
    At {
        /// When it reached the score.
        reached: Stamp,
        /// The member.
        member: SubjectId,
    },
}

impl Standing {
    /// Where a member stands.
    pub fn of(key: &ScoreKey, score: Score) -> Self {
        let among = Among::At { reached: score.reached, member: key.member.clone() };
        Self { board: key.board.clone(), score: score.score, among }
    }

    /// Whether a member stands before this place.
    pub fn is_behind(&self, member: &SubjectId, score: Score) -> bool {
        match score.score.cmp(&self.score) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => match &self.among {
                Among::First => false,
                Among::Last => true,
                Among::At { reached, member: other } => (score.reached, member) < (*reached, other),
            },
        }
    }
}
