//! What is counted, over HTTP: the contract's calls for each command and question.

use reqwest::{Method, RequestBuilder};
use serde_json::json;
use tally::core::command::{Command, ScoreChange};
use tally::core::query::{CountingQuery, Matching};
use tally::core::{Day, Name, Timestamp};

use super::Remote;
use crate::failure::Failure;

fn day_text(day: Option<Day>) -> String {
    day.map_or_else(|| "today".to_owned(), |day| day.to_string())
}

fn season_text(season: Option<Timestamp>) -> Option<String> {
    season.map(|season| season.to_string())
}

impl Remote {
    /// A change of what is counted.
    pub(super) fn change(&self, command: &Command) -> Result<RequestBuilder, Failure> {
        let post = |path: &[&str], body| Ok(self.request(Method::POST, path)?.json(&body));
        match command {
            Command::Count { counter, key, by } => {
                post(&["v1", "counters", counter.as_str(), key.as_str()], json!({"by": by}))
            }
            Command::Observe { unique, key, members } => {
                post(&["v1", "uniques", unique.as_str(), key.as_str()], json!({"members": members}))
            }
            Command::Attend { sheet, day, subject, present } => {
                let method = if *present { Method::PUT } else { Method::DELETE };
                self.request(method, &["v1", "attendance", sheet.as_str(), &day_text(*day), subject.as_str()])
            }
            Command::Score { board, member, change } => {
                let path = ["v1", "boards", board.as_str(), member.as_str()];
                match change {
                    ScoreChange::By(by) => post(&path, json!({"by": by})),
                    ScoreChange::To(score) => Ok(self.request(Method::PUT, &path)?.json(&json!({"score": score}))),
                    ScoreChange::Leave => self.request(Method::DELETE, &path),
                }
            }
            Command::Take { limit, key, cost } => {
                post(&["v1", "limits", limit.as_str(), key.as_str()], json!({"cost": cost}))
            }
            other => Err(Failure::new(format!("there is no call for {other:?}"))),
        }
    }

    /// A question about what is counted.
    pub(super) fn counting(&self, query: &CountingQuery) -> Result<RequestBuilder, Failure> {
        let get = |path: &[&str], query: &[(&str, Option<String>)]| self.request_with(Method::GET, path, query);
        match query {
            CountingQuery::Counter { counter, key } => get(&["v1", "counters", counter.as_str(), key.as_str()], &[]),
            CountingQuery::Unique { unique, keys } => {
                // One parameter each, so that a key may hold a comma.
                let keys: Vec<_> = keys.iter().map(|key| ("keys", Some(key.to_string()))).collect();
                get(&["v1", "uniques", unique.as_str()], &keys)
            }
            CountingQuery::Day { sheet, day } => get(&["v1", "attendance", sheet.as_str(), &day_text(*day)], &[]),
            CountingQuery::Days { sheet, days, matching } => self.days(sheet, days, *matching),
            CountingQuery::Presence { sheet, day, subject } => {
                get(&["v1", "attendance", sheet.as_str(), &day_text(*day), subject.as_str()], &[])
            }
            CountingQuery::SubjectDays { sheet, subject, from, to } => {
                let between = [("from", from.map(|day| day.to_string())), ("to", to.map(|day| day.to_string()))];
                get(&["v1", "subjects", subject.as_str(), "attendance", sheet.as_str()], &between)
            }
            CountingQuery::Board { board, season, rank, limit, cursor } => get(
                &["v1", "boards", board.as_str()],
                &[
                    ("limit", Some(limit.to_string())),
                    ("rank", rank.map(|rank| rank.to_string())),
                    ("season", season_text(*season)),
                    ("cursor", cursor.clone()),
                ],
            ),
            CountingQuery::Standing { board, season, member, around } => get(
                &["v1", "boards", board.as_str(), member.as_str()],
                &[("around", Some(around.to_string())), ("season", season_text(*season))],
            ),
            CountingQuery::Seasons { board } => get(&["v1", "seasons", board.as_str()], &[]),
            CountingQuery::Limit { limit, key } => get(&["v1", "limits", limit.as_str(), key.as_str()], &[]),
        }
    }

    fn days(&self, sheet: &Name, days: &[Day], matching: Matching) -> Result<RequestBuilder, Failure> {
        let days: Vec<String> = days.iter().map(ToString::to_string).collect();
        let matching = if matching == Matching::All { "all" } else { "any" };
        let query = [("days", Some(days.join(","))), ("match", Some(matching.to_owned()))];
        self.request_with(Method::GET, &["v1", "attendance", sheet.as_str()], &query)
    }
}
