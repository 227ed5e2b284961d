//! Time as data. Nothing here asks what time it is.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Milliseconds since 1970, written as RFC 3339 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The moment `ms` milliseconds later.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl fmt::Display for Timestamp {
    /// Written by hand, since every answer carries a time and this is several times as fast as a calendar library.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = civil(days);
        if year > 9999 {
            return write!(f, "{}ms", self.0);
        }
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut digits = |from: usize, to: usize, mut value: u64| {
            for place in (from..to).rev() {
                text[place] = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        digits(0, 4, year);
        digits(5, 7, month);
        digits(8, 10, day);
        digits(11, 13, ms / 3_600_000);
        digits(14, 16, ms / 60_000 % 60);
        digits(17, 19, ms / 1_000 % 60);
        digits(20, 23, ms % 1_000);
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Year, month and day of a day since 1970, in the Gregorian calendar. Years are counted from
/// March, so that the leap day is the last of its year.
pub(crate) fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let at: jiff::Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Self(u64::try_from(at.as_millisecond()).unwrap_or(0)))
    }
}

/// When a command was decided: microseconds since 1970, so that a store with a time of its own can
/// keep it as one.
///
/// Stamps of one runner are unique and their plain order is the order of the decisions: where
/// several fall into one microsecond, the later ones take those that follow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Stamp(pub u64);

const MICROS: u64 = 1_000;

/// So far at most the time is ahead of the clock, because rows are: a minute.
pub const AHEAD_US_MAX: u64 = 60_000_000;

/// A stamp further ahead than this was made by a clock that was wrong: a day. On a store that several servers share no stamp
/// goes on from it.
pub const STAMP_AHEAD_US_MAX: u64 = 86_400_000_000;

impl Stamp {
    /// The first stamp of a millisecond.
    pub fn at(time: Timestamp) -> Self {
        Self(time.0.saturating_mul(MICROS))
    }

    /// The stamp right behind this one, never before `now`.
    pub fn next(self, now: Self) -> Self {
        Self(now.0.max(self.0 + 1))
    }

    /// What time it is for what is stamped so, by a clock that says `now`.
    ///
    /// Stamps go on from the newest that the store holds, so that order is strict. If a clock was a day ahead when that was
    /// made, they stay a day ahead until the clock is there; the time that limits and expiry go by does not wait for it.
    pub fn time_at(self, now: Self) -> Self {
        Self(self.0.min(now.0.saturating_add(AHEAD_US_MAX)))
    }

    /// Whether it was made by a clock that was wrong, if `now` is right.
    pub fn is_wrong(self, now: Self) -> bool {
        self.0 > now.0.saturating_add(STAMP_AHEAD_US_MAX)
    }

    /// Whether what is stamped so was made before another stamp, as far as can be told at `now`: what a wrong clock stamped was
    /// made while it was wrong, and so before.
    pub fn was_before(self, other: Self, now: Self) -> bool {
        self < other || (self.is_wrong(now) && !other.is_wrong(now))
    }

    /// The millisecond.
    pub fn time(self) -> Timestamp {
        Timestamp(self.0 / MICROS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_only_grow_whatever_the_clock_does() {
        let at = |ms| Stamp::at(Timestamp(ms));
        let first = Stamp::default().next(at(1_000));
        let same = first.next(at(1_000));
        let back = same.next(at(10));
        assert!(first < same && same < back);
        assert_eq!(back.time(), Timestamp(1_000));
        assert_eq!(back.next(at(1_001)).time(), Timestamp(1_001));
    }

    #[test]
    fn stamps_from_the_future_hold_time_up_for_a_minute_at_most() {
        let (now, day) = (Stamp::at(Timestamp(1_000_000)), 86_400_000_000);
        assert_eq!(now.time_at(now), now);
        assert_eq!(Stamp(now.0 + 5).time_at(now), Stamp(now.0 + 5));
        assert_eq!(Stamp(now.0 + day).time_at(now), Stamp(now.0 + AHEAD_US_MAX));
        assert_eq!(
            Stamp(now.0 + day + 1).time_at(Stamp(now.0 + 1)),
            Stamp(now.0 + 1 + AHEAD_US_MAX),
            "and it moves on"
        );
    }

    #[test]
    fn what_a_wrong_clock_stamped_was_before() {
        let (now, day) = (Stamp::at(Timestamp(1_000_000)), STAMP_AHEAD_US_MAX);
        let (job, hour) = (Stamp(now.0 - 10), 3_600_000_000);
        assert!(Stamp(job.0 - 1).was_before(job, now));
        assert!(!job.was_before(job, now) && !Stamp(now.0 + hour).was_before(job, now), "made since");
        assert!(Stamp(now.0 + day + 1).was_before(job, now), "no stamp goes on from there");
        let wrong = Stamp(now.0 + 2 * day);
        assert!(!Stamp(wrong.0 + 1).was_before(wrong, now), "of two that are wrong, the later one is later");
    }

    #[test]
    fn dates_agree_with_a_calendar_library() {
        for day in (0..2_932_000_u64).step_by(97).chain([59, 60, 789, 11_016, 11_017, 47_540, 47_541]) {
            let ms = day * 86_400_000 + day * 7_919 % 86_400_000;
            let expected = jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap()).unwrap();
            assert_eq!(Timestamp(ms).to_string(), format!("{expected:.3}"));
        }
    }

    #[test]
    fn times_are_rfc_3339_with_milliseconds() {
        let json = serde_json::to_string(&Timestamp(1_700_000_000_120)).unwrap();
        assert_eq!(json, "\"2023-11-14T22:13:20.120Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), Timestamp(1_700_000_000_120));
    }
}
