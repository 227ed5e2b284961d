//! The rows of boards: scores, and what is known of a board beyond them.

use serde::{Deserialize, Serialize};

use crate::id::{Name, SubjectId};
use crate::rows::{Place, Standing};
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

impl ScoreKey {
    /// Where the member stands in the order of the board.
    pub fn place(&self, score: Score) -> Place {
        Place { score: score.score, reached: score.reached.0, id: self.member.shared() }
    }

    /// The same as something to ask about.
    pub fn standing(&self, score: Score) -> Standing {
        Standing::at(self.board.clone().into(), self.place(score))
    }
}
