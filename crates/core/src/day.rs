//! Calendar days.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::error::Refusal;
use crate::time::Timestamp;

/// A calendar date: days since 1970-01-01.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Day(pub u32);

const EPOCH: Date = Date::constant(1970, 1, 1);

impl Day {
    /// The last one: 9999-12-31.
    pub const LAST: Self = Self(2_932_896);

    /// The day that a moment falls on.
    pub fn of(time: Timestamp, zone: &TimeZone) -> Self {
        let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
        let date = jiff::Timestamp::from_millisecond(ms).map(|at| zone.to_datetime(at).date());
        date.ok().and_then(Self::from_date).unwrap_or(Self(0))
    }

    fn from_date(date: Date) -> Option<Self> {
        let days = date.duration_since(EPOCH).as_hours() / 24;
        u32::try_from(days).ok().map(Self).filter(|day| *day <= Self::LAST)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = crate::time::civil(u64::from(self.0));
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for Day {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let wrong = || Refusal::bad_request("a day is written as 2026-01-31, from 1970 on");
        // The parser alone would take a time behind it, or a sign before it.
        if text.len() != 10 || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
            return Err(wrong());
        }
        text.parse::<Date>().ok().and_then(Self::from_date).ok_or_else(wrong)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_written_and_read() {
        for (text, number) in [("1970-01-01", 0), ("1970-03-01", 59), ("2024-02-29", 19_782), ("9999-12-31", 2_932_896)]
        {
            assert_eq!(text.parse::<Day>().unwrap(), Day(number));
            assert_eq!(Day(number).to_string(), text);
        }
        for wrong in
            ["", "1969-12-31", "2023-02-29", "2026-1-1", "2026-01-01T00:00", "+2026-01-01", "20260101", "today"]
        {
            assert!(wrong.parse::<Day>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_time_zone_says_when_a_day_ends() {
        let at = |text: &str| Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond().unsigned_abs());
        let seoul = TimeZone::get("Asia/Seoul").unwrap();
        let of = |text: &str, zone: &TimeZone| Day::of(at(text), zone).to_string();
        assert_eq!(of("2026-03-01T14:59:59Z", &seoul), "2026-03-01");
        assert_eq!(of("2026-03-01T15:00:00Z", &seoul), "2026-03-02");
        assert_eq!(of("2026-03-01T15:00:00Z", &TimeZone::UTC), "2026-03-01");
    }
}
