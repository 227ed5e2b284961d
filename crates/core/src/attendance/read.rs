//! Reading days: how many, who, which.

use serde::{Deserialize, Serialize};

use super::{DAYS_MAX, current_streak, days, longest_streak, run_up_to, today};
use crate::day::Day;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::permission::Permission;
use crate::query::{Ask, Question, questions};
use crate::read::{Halt, Sight};
use crate::rows::{Bits, Key, Row, TotalKey};
use crate::view::Wants;

/// How many were there on a day?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DayQuery {
    /// The sheet.
    pub sheet: Name,
    /// The day; none is today.
    pub day: Option<Day>,
}

/// How many were there on any, or on all, of these days?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DaysQuery {
    /// The sheet.
    pub sheet: Name,
    /// The days.
    pub days: Vec<Day>,
    /// Any or all.
    pub matching: Matching,
}

/// Was this subject there on this day?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresenceQuery {
    /// The sheet.
    pub sheet: Name,
    /// The day; none is today.
    pub day: Option<Day>,
    /// The subject whose days are asked for.
    pub subject: SubjectId,
}

/// On which days was this subject there?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubjectDaysQuery {
    /// The sheet.
    pub sheet: Name,
    /// The subject whose days are asked for.
    pub subject: SubjectId,
    /// From this day on.
    pub from: Option<Day>,
    /// Up to this day.
    pub to: Option<Day>,
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

questions!(Attendance: Day(DayQuery) -> DayAnswer, Days(DaysQuery) -> DaysAnswer, Presence(PresenceQuery) -> PresenceAnswer, SubjectDays(SubjectDaysQuery) -> SubjectDaysAnswer; with CountedDay, Matching);

impl Question for DayQuery {
    type Answer = DayAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadDay));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<DayAnswer, Halt> {
        let day = day_or_today(&self.sheet, self.day, sight)?;
        let found = sight.load(|| Wants::totals(vec![TotalKey::Present { sheet: self.sheet.clone(), day }]))?;
        Ok(DayAnswer { day, count: found.totals.first().copied().unwrap_or(0) })
    }
}

impl Question for DaysQuery {
    type Answer = DaysAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadDay));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<DaysAnswer, Halt> {
        sight.catalog.sheet(&self.sheet)?;
        if self.days.is_empty() || self.days.len() > DAYS_MAX {
            return Err(Refusal::bad_request(format!("days are 1 to {DAYS_MAX}")).into());
        }
        let mut days = self.days.clone();
        days.sort_unstable();
        days.dedup();
        days::read(&self.sheet, days, self.matching, sight)
    }
}

impl Question for PresenceQuery {
    type Answer = PresenceAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadAttendance).about(Some(&self.subject)));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<PresenceAnswer, Halt> {
        let day = day_or_today(&self.sheet, self.day, sight)?;
        let present = days_of(&self.sheet, &self.subject, sight)?.contains(day.0);
        Ok(PresenceAnswer { day, present })
    }
}

impl Question for SubjectDaysQuery {
    type Answer = SubjectDaysAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadAttendance).about(Some(&self.subject)));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<SubjectDaysAnswer, Halt> {
        let today = day_or_today(&self.sheet, None, sight)?;
        let all = days_of(&self.sheet, &self.subject, sight)?;
        let (from, to) = (self.from.unwrap_or(Day(0)), self.to.unwrap_or(Day::LAST));
        if from > to {
            return Err(Refusal::bad_request("from is later than to").into());
        }
        let days: Vec<u32> = all.bitmap().range(from.0..=to.0).collect();
        Ok(SubjectDaysAnswer {
            count: days.len() as u64,
            // Only today may be missing still.
            current_streak: match to < today {
                true => run_up_to(all.bitmap(), to),
                false => current_streak(all.bitmap(), today),
            },
            longest_streak: longest_streak(days.iter().copied()),
            days: days.into_iter().map(Day).collect(),
        })
    }
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

fn day_or_today(sheet: &Name, day: Option<Day>, sight: &mut Sight<'_>) -> Result<Day, Halt> {
    let def = sight.catalog.sheet(sheet)?;
    match day {
        Some(day) => Ok(day),
        None => Ok(today(def, sight.store_time()?)),
    }
}

fn days_of(sheet: &Name, subject: &SubjectId, sight: &mut Sight<'_>) -> Result<Bits, Halt> {
    let row = sight.row(|| Key::Attendee((sheet.clone(), subject.clone())))?;
    Ok(row.and_then(Row::into_attendee).map(|attendee| attendee.days).unwrap_or_default())
}
