//! Attendance: who was there on which day? A day that is left out is today, where the sheet's days end.

use tally_core::command::Attend;
use tally_core::query::{
    DayAnswer, DayQuery, DaysAnswer, DaysQuery, Matching, PresenceAnswer, PresenceQuery, SubjectDaysAnswer,
    SubjectDaysQuery,
};
use tally_core::reply::AttendReply;
use tally_core::{Day, Name, SubjectId};

use crate::request::requests;
use crate::{Call, Client};

fn day_text(day: Option<Day>) -> String {
    day.map_or_else(|| "today".to_owned(), |day| day.to_string())
}

impl Client {
    /// Says that a subject was there on a day, or that it was not.
    pub fn attend(&self, sheet: &Name, day: Option<Day>, subject: &SubjectId, present: bool) -> Call<AttendReply> {
        let day = day_text(day);
        let path = ["v1", "attendance", sheet.as_str(), &day, subject.as_str()];
        if present { self.put(&path) } else { self.delete(&path) }
    }

    /// Whether a subject was there on a day.
    pub fn presence(&self, sheet: &Name, day: Option<Day>, subject: &SubjectId) -> Call<PresenceAnswer> {
        self.get(&["v1", "attendance", sheet.as_str(), &day_text(day), subject.as_str()])
    }

    /// How many were there on a day.
    pub fn day(&self, sheet: &Name, day: Option<Day>) -> Call<DayAnswer> {
        self.get(&["v1", "attendance", sheet.as_str(), &day_text(day)])
    }

    /// How many were there on any of these days, or on all of them.
    pub fn days(&self, sheet: &Name, days: &[Day], matching: Matching) -> Call<DaysAnswer> {
        let days: Vec<String> = days.iter().map(ToString::to_string).collect();
        let matching = match matching {
            Matching::All => "all",
            Matching::Any => "any",
        };
        let query = [("days", Some(days.join(","))), ("match", Some(matching.to_owned()))];
        self.get_with(&["v1", "attendance", sheet.as_str()], &query)
    }

    /// On which days a subject was there, and how many in a row.
    pub fn subject_days(
        &self,
        sheet: &Name,
        subject: &SubjectId,
        from: Option<Day>,
        to: Option<Day>,
    ) -> Call<SubjectDaysAnswer> {
        let between = [("from", from.map(|day| day.to_string())), ("to", to.map(|day| day.to_string()))];
        self.get_with(&["v1", "subjects", subject.as_str(), "attendance", sheet.as_str()], &between)
    }
}

requests! {
    Attend => AttendReply: |ask, client| client.attend(&ask.sheet, ask.day, &ask.subject, ask.present);
    DayQuery => DayAnswer: |ask, client| client.day(&ask.sheet, ask.day);
    DaysQuery => DaysAnswer: |ask, client| client.days(&ask.sheet, &ask.days, ask.matching);
    PresenceQuery => PresenceAnswer: |ask, client| client.presence(&ask.sheet, ask.day, &ask.subject);
    SubjectDaysQuery => SubjectDaysAnswer: |ask, client| client.subject_days(&ask.sheet, &ask.subject, ask.from, ask.to);
}
