//! Questions about what is counted.

use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::id::{KeyId, Name, SubjectId};
use crate::time::Timestamp;

/// A question about what is counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CountingQuery {
    /// How many times?
    Counter {
        /// The counter.
        counter: Name,
        /// What is counted.
        key: KeyId,
    },
    /// How many different ones, in one key or in several together?
    Unique {
        /// The unique count.
        unique: Name,
        /// The keys.
        keys: Vec<KeyId>,
    },
    /// How many were there on a day?
    Day {
        /// The sheet.
        sheet: Name,
        /// The day; none is today.
        day: Option<Day>,
    },
    /// How many were there on any, or on all, of these days?
    Days {
        /// The sheet.
        sheet: Name,
        /// The days.
        days: Vec<Day>,
        /// Any or all.
        matching: Matching,
    },
    /// Was this subject there on this day?
    Presence {
        /// The sheet.
        sheet: Name,
        /// The day; none is today.
        day: Option<Day>,
        /// The subject whose days are asked for.
        subject: SubjectId,
    },
    /// On which days was this subject there?
    SubjectDays {
        /// The sheet.
        sheet: Name,
        /// The subject whose days are asked for.
        subject: SubjectId,
        /// From this day on.
        from: Option<Day>,
        /// Up to this day.
        to: Option<Day>,
    },
    /// A page of a board, the best first.
    Board {
        /// The board.
        board: Name,
        /// When the season began; none is the one of now.
        season: Option<Timestamp>,
        /// The rank to begin with, from 1; not together with a cursor.
        rank: Option<u64>,
        /// Items on the page.
        limit: u32,
        /// Where to go on.
        cursor: Option<String>,
    },
    /// Where does this member stand, and next to whom?
    Standing {
        /// The board.
        board: Name,
        /// When the season began; none is the one of now.
        season: Option<Timestamp>,
        /// The member.
        member: SubjectId,
        /// How many neighbours on either side.
        around: u32,
    },
    /// Which seasons has this board had?
    Seasons {
        /// The board.
        board: Name,
    },
    /// How does this limit stand?
    Limit {
        /// The limit.
        limit: Name,
        /// Whose use of the limit is asked for.
        key: KeyId,
    },
}

/// On any of the days, or on all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Matching {
    /// Present on any of the days.
    #[default]
    Any,
    /// Present on all of the days.
    All,
}

/// What is answered.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum CountingAnswer {
    /// To [`CountingQuery::Counter`].
    Counter(CounterAnswer),
    /// To [`CountingQuery::Unique`].
    Unique(UniqueAnswer),
    /// To [`CountingQuery::Day`].
    Day(DayAnswer),
    /// To [`CountingQuery::Days`].
    Days(DaysAnswer),
    /// To [`CountingQuery::Presence`].
    Presence(PresenceAnswer),
    /// To [`CountingQuery::SubjectDays`].
    SubjectDays(SubjectDaysAnswer),
    /// To [`CountingQuery::Board`].
    Board(BoardAnswer),
    /// To [`CountingQuery::Standing`].
    Standing(StandingAnswer),
    /// To [`CountingQuery::Seasons`].
    Seasons(SeasonsAnswer),
    /// To [`CountingQuery::Limit`].
    Limit(LimitAnswer),
}

/// A counter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CounterAnswer {
    /// Its value.
    pub value: i64,
    /// As of when.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub as_of: Timestamp,
    /// When it was last added to, to the second, where it keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_at: Option<Timestamp>,
}

/// How many different ones.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UniqueAnswer {
    /// About how many.
    pub estimate: u64,
    /// The standard error of that, as a part of it: 0.0081 is 0.81 %.
    pub error: f64,
}

/// A day of a sheet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DayAnswer {
    /// The day.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub day: Day,
    /// How many were there.
    pub count: i64,
}

/// Several days of a sheet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DaysAnswer {
    /// How many different ones were there on any, or on all, of the days.
    pub count: u64,
    /// Which of the two.
    #[serde(rename = "match")]
    pub matching: Matching,
    /// Each day by itself.
    pub days: Vec<CountedDay>,
}

/// One of several days.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CountedDay {
    /// The day.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub day: Day,
    /// How many were there.
    pub count: i64,
}

/// A subject on a day.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PresenceAnswer {
    /// The day.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub day: Day,
    /// Whether it was there.
    pub present: bool,
}

/// The days of a subject.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubjectDaysAnswer {
    /// The days, oldest first.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub days: Vec<Day>,
    /// How many there are.
    pub count: u64,
    /// Days in a row up to today, or up to the end of what was asked for. Today may be missing still.
    pub current_streak: u32,
    /// The most days in a row.
    pub longest_streak: u32,
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

/// How a limit stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitAnswer {
    /// How much is left.
    pub remaining: u64,
    /// In how many milliseconds all of it is there again.
    pub reset_ms: u64,
    /// How much there is in all.
    pub amount: u64,
    /// In how many milliseconds it is given.
    pub window_ms: u64,
}
