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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(ms) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{ms}ms"),
        }
    }
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

/// When a command was decided, and its place among those of the same millisecond.
///
/// The high 44 bits are milliseconds, the low 20 a tie-breaker, so stamps of one runner are
/// unique and their plain order is the order of the decisions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Stamp(pub u64);

const TIE_BITS: u32 = 20;

impl Stamp {
    /// The first stamp of a millisecond.
    pub fn at(time: Timestamp) -> Self {
        Self(time.0 << TIE_BITS)
    }

    /// The stamp right behind this one, never before `now`.
    pub fn next(self, now: Timestamp) -> Self {
        Self(Self::at(now).0.max(self.0 + 1))
    }

    /// The millisecond.
    pub fn time(self) -> Timestamp {
        Timestamp(self.0 >> TIE_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_only_grow_whatever_the_clock_does() {
        let first = Stamp::default().next(Timestamp(1_000));
        let same = first.next(Timestamp(1_000));
        let back = same.next(Timestamp(10));
        assert!(first < same && same < back);
        assert_eq!(back.time(), Timestamp(1_000));
        assert_eq!(back.next(Timestamp(1_001)).time(), Timestamp(1_001));
    }

    #[test]
    fn times_are_rfc_3339_with_milliseconds() {
        let json = serde_json::to_string(&Timestamp(1_700_000_000_120)).unwrap();
        assert_eq!(json, "\"2023-11-14T22:13:20.120Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), Timestamp(1_700_000_000_120));
    }
}
