//! Who leads, and who stands where.

pub(crate) mod audit;
mod def;
mod forget;
mod page;
pub mod read;
pub mod rows;
mod rule;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::batch::{InBatch, Written, need};
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::operation::{About, Operation, operations};
use crate::permission::Permission;
use crate::reply::{Answered, Done, NamesMut, Told};
use crate::time::Timestamp;
use crate::view::{Stop, View};

pub use audit::Fact;
pub use def::{BoardDef, Ties};
pub use read::{Answer, Query};
pub use rule::{board_key, check_ties, rank_standing};

/// Changes a member's score.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeScore {
    /// The board.
    pub board: Name,
    /// The member.
    pub member: SubjectId,
    /// How the score changes.
    pub change: ScoreChange,
}

/// How a score changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScoreChange {
    /// By so much.
    By(i64),
    /// To this; on a board that keeps the best, only upwards.
    To(i64),
    /// The member leaves the board.
    Leave,
}

/// Says how a board without members is ranked from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankAnew {
    /// The board.
    pub board: Name,
    /// Whether by the different scores.
    pub dense: bool,
}

operations!(Board: ChangeScore, RankAnew; with ScoreChange; counts);

impl Operation for ChangeScore {
    type Reply = ScoreReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<ScoreReply, Stop> {
        rule::score(self, context, view)
    }

    fn about(&self) -> About<'_> {
        let makes = match self.change {
            ScoreChange::By(_) | ScoreChange::To(_) => true,
            ScoreChange::Leave => false,
        };
        // Members of a board share its order.
        About::caller(Permission::Score).subject(&self.member).making(makes).counted(self.board.as_str(), "")
    }

    fn acting_mut(&mut self) -> Option<&mut SubjectId> {
        Some(&mut self.member)
    }

    fn written(&self) -> Option<serde_json::Value> {
        let Self { board, member, change } = self;
        match change {
            ScoreChange::By(by) => Some(json!({"op": "score", "board": board, "member": member, "by": by})),
            ScoreChange::To(score) => Some(json!({"op": "score", "board": board, "member": member, "score": score})),
            ScoreChange::Leave => None,
        }
    }
}

impl InBatch for ChangeScore {
    const TAKES: &'static [&'static str] = &["board", "member", "by", "score"];

    fn read(written: Written) -> Result<Self, Refusal> {
        let change = match (written.by, written.score) {
            (Some(by), None) => ScoreChange::By(by),
            (None, Some(score)) => ScoreChange::To(score),
            (Some(_), Some(_)) | (None, None) => {
                return Err(Refusal::bad_request("score takes either `by` or `score`"));
            }
        };
        Ok(Self { board: need!(written.board), member: need!(written.member), change })
    }
}

impl Operation for RankAnew {
    type Reply = Done;

    fn decide(&self, _context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
        rule::rank_anew(self, view)
    }
}

/// A member of a board after a write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScoreReply {
    /// The board.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub board: Name,
    /// The member.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub member: SubjectId,
    /// Its score; absent when it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
    /// Its rank, from 1; absent when it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// Whether this write altered anything.
    pub changed: bool,
    /// When the season began, on a board that has seasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub season: Option<Timestamp>,
}

impl Answered for ScoreReply {
    fn correct(&mut self, told: &mut Told<'_>) {
        if let Some(rank) = &mut self.rank {
            *rank = rank.wrapping_add(told.ranks.next().unwrap_or(0));
        }
    }

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut { subject: Some(&mut self.member), ..NamesMut::default() }
    }
}
