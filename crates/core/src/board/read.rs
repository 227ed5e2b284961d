//! Reading boards: pages, ranks, neighbours, seasons.

use serde::{Deserialize, Serialize};

use super::page;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::permission::Permission;
use crate::query::{Ask, Question, questions};
use crate::read::{Halt, Sight};
use crate::rows::Key;
use crate::time::Timestamp;
use crate::view::Wants;

/// A page of a board, the best first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoardQuery {
    /// The board.
    pub board: Name,
    /// When the season began; none is the one of now.
    pub season: Option<Timestamp>,
    /// The rank to begin with, from 1; not together with a cursor.
    pub rank: Option<u64>,
    /// Items on the page.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// Where does this member stand, and next to whom?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandingQuery {
    /// The board.
    pub board: Name,
    /// When the season began; none is the one of now.
    pub season: Option<Timestamp>,
    /// The member.
    pub member: SubjectId,
    /// How many neighbours on either side.
    pub around: u32,
}

/// Which seasons has this board had?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeasonsQuery {
    /// The board.
    pub board: Name,
}

questions!(Board: Board(BoardQuery) -> BoardAnswer, Standing(StandingQuery) -> StandingAnswer, Seasons(SeasonsQuery) -> SeasonsAnswer; with BoardItem, SeasonItem);

impl Question for BoardQuery {
    type Answer = BoardAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadBoard));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<BoardAnswer, Halt> {
        page::page(self, sight)
    }
}

impl Question for StandingQuery {
    type Answer = StandingAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadBoard).about(Some(&self.member)));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<StandingAnswer, Halt> {
        page::standing(self, sight)
    }
}

impl Question for SeasonsQuery {
    type Answer = SeasonsAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadBoard));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<SeasonsAnswer, Halt> {
        let name = &self.board;
        let def = sight.catalog.board(name)?.clone();
        let Some(schedule) = &def.season else {
            return Err(Refusal::bad_request(format!("`{name}` has no seasons")).into());
        };
        let found = sight.load(|| Wants::rows(vec![Key::Board(name.clone())]))?;
        let seasons = found.rows.first().and_then(|row| row.as_ref()?.board()).map(|board| board.seasons.as_slice());
        let now = found.now.time();
        let items = seasons.unwrap_or_default().iter().rev().map(|season| {
            let ends_at = schedule.next(*season);
            SeasonItem { season: *season, ends_at, closed: ends_at.is_some_and(|end| end <= now) }
        });
        Ok(SeasonsAnswer { items: items.collect() })
    }
}

/// A page of a board.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BoardAnswer {
    /// When the season began, on a board that has seasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub season: Option<Timestamp>,
    /// How many members there are.
    pub members: u64,
    /// Members, the best first.
    pub items: Vec<BoardItem>,
    /// Where to go on; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A member of a board.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BoardItem {
    /// The member.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub member: SubjectId,
    /// Its score.
    pub score: i64,
    /// Its rank, from 1.
    pub rank: u64,
}

/// Where a member stands; without score and rank where it is not on the board.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StandingAnswer {
    /// The member.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub member: SubjectId,
    /// Its score.
    pub score: Option<i64>,
    /// Its rank, from 1.
    pub rank: Option<u64>,
    /// When the season began, on a board that has seasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub season: Option<Timestamp>,
    /// How many members there are.
    pub members: u64,
    /// Its neighbours and itself, the best first; absent unless asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Vec<BoardItem>>,
}

/// The seasons of a board.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SeasonsAnswer {
    /// The seasons, newest first.
    pub items: Vec<SeasonItem>,
}

/// A season.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SeasonItem {
    /// When it began, which is its name.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub season: Timestamp,
    /// When it ends or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ends_at: Option<Timestamp>,
    /// Whether it is over.
    pub closed: bool,
}
