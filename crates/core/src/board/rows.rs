//! The rows of boards: scores, and what is known of a board beyond them.

use serde::{Deserialize, Serialize};

use super::audit;
use crate::id::{Name, SubjectId};
use crate::rows::{InOrder, Kind, OrderKey, Ordered, Place, Standing, columns, declare, kind};
use crate::time::{Stamp, Timestamp};
use crate::verify::Audit;

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

columns!(BoardKey { board, season, levels });
columns!(Board { seasons, dense });
columns!(ScoreKey { board, member });
columns!(Score { score, reached });

impl Kind for kind::Board {
    declare!(Board = b'B' "board" in "board"
        ("board" Text) => ("seasons" Times, "dense" Flag)
        Absent With(0));

    const AUDIT: Option<Audit<Self>> = Some(Audit { tells: Some(audit::board), ..Audit::NOTHING });
}

impl Kind for kind::Score {
    declare!(Score = b'w' "score" in "board"
        ("board" Text, "season" Time, "levels" Flag, "member" Text) => ("score" Signed, "reached_us" Number)
        Absent With(0), order Ordered { score: Some("score"), reached: "reached_us", only: None });

    const ORDER: Option<InOrder<Self>> = Some(InOrder {
        order: |key| OrderKey::Board(key.board.clone()),
        place: |key, score| Some(key.place(*score)),
        row: Some(|place| Score { score: place.score, reached: Stamp(place.reached) }),
    });
    const AUDIT: Option<Audit<Self>> = Some(Audit { claims: Some(audit::score), ..Audit::NOTHING });
}
