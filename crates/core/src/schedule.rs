//! Seasons: which one a moment falls into. Nothing has to happen when one ends; the next write simply goes to the next.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};

use crate::time::Timestamp;

/// When seasons begin, written as a crontab such as `0 0 * * MON` or `0 0 1 * * Asia/Seoul`.
#[derive(Clone)]
pub struct Schedule {
    text: Arc<str>,
    crontab: Arc<Crontab>,
    /// The season that was asked for last: nearly all questions are about the same one.
    last: Arc<Mutex<Option<(Timestamp, Timestamp)>>>,
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schedule").field(&self.text).finish()
    }
}

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
/// How far to look back for a beginning, the nearest first, so that there are never many on the way.
const LOOK_BACK_MS: [u64; 7] =
    [60 * MINUTE_MS, DAY_MS, 7 * DAY_MS, 31 * DAY_MS, 366 * DAY_MS, 4 * 366 * DAY_MS, 9 * 366 * DAY_MS];

impl Schedule {
    /// Reads a crontab; one without a time zone is in UTC.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let crontab = cronexpr::parse_crontab_with(text, options).map_err(|error| error.to_string())?;
        let schedule = Self { text: text.into(), crontab: Arc::new(crontab), last: Arc::default() };
        match schedule.next(Timestamp(0)) {
            Some(_) => Ok(schedule),
            None => Err("there is no such day".into()),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The first beginning behind a moment.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = MakeTimestamp::from_millisecond(i64::try_from(after.0).ok()?).ok()?;
        let next = self.crontab.find_next(after).ok()?;
        u64::try_from(next.timestamp().as_millisecond()).ok().map(Timestamp)
    }

    /// When the season of a moment began; 0 for one before the first.
    pub fn season(&self, now: Timestamp) -> Timestamp {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((start, end)) = *last
            && start <= now
            && now < end
        {
            return start;
        }
        let found = self.find(now);
        *last = Some(found);
        found.0
    }

    fn find(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        for back in LOOK_BACK_MS {
            let mut start = None;
            let mut next = self.next(Timestamp(now.0.saturating_sub(back)));
            while let Some(begun) = next.filter(|next| *next <= now) {
                start = Some(begun);
                next = self.next(begun);
            }
            if let Some(start) = start {
                return (start, next.unwrap_or(Timestamp(u64::MAX)));
            }
        }
        (Timestamp(0), self.next(now).unwrap_or(Timestamp(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        serde_json::from_value(text.into()).unwrap()
    }

    #[test]
    fn a_season_begins_when_the_schedule_says() {
        let weekly = Schedule::new("0 0 * * MON").unwrap();
        for (now, start) in [
            ("2026-11-16T00:00:00Z", "2026-11-16T00:00:00Z"),
            ("2026-11-15T23:59:59.999Z", "2026-11-09T00:00:00Z"),
            ("2026-11-22T12:00:00Z", "2026-11-16T00:00:00Z"),
        ] {
            assert_eq!(weekly.season(at(now)), at(start), "{now}");
        }
        let monthly = Schedule::new("0 0 1 * * Asia/Seoul").unwrap();
        assert_eq!(monthly.season(at("2026-02-28T15:00:00Z")), at("2026-02-28T15:00:00Z"));
        assert_eq!(monthly.season(at("2026-02-28T14:59:59Z")), at("2026-01-31T15:00:00Z"));
        let leap = Schedule::new("0 0 29 2 *").unwrap();
        assert_eq!(leap.season(at("2027-11-16T00:00:00Z")), at("2024-02-29T00:00:00Z"));
        let minutes = Schedule::new("*/5 * * * *").unwrap();
        assert_eq!(minutes.season(at("2027-11-16T00:04:59Z")), at("2027-11-16T00:00:00Z"));
    }

    #[test]
    fn what_never_happens_is_refused() {
        for wrong in ["", "0 0 * *", "0 0 30 2 *", "61 * * * *", "0 0 * * MON Mars/Base"] {
            assert!(Schedule::new(wrong).is_err(), "{wrong}");
        }
    }
}
