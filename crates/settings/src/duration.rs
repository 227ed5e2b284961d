//! Durations as people write them.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// `"100ms"`, `"30s"`, `"5m"`, `"24h"`, `"7d"`; a number without a unit is refused, because people
/// disagree on what it would mean.
pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*unit_ms).map(Duration::from_millis)
}

/// A short text that [`duration`] reads back as the same length. One day is "24h", as people say it.
pub fn duration_text(length: Duration) -> String {
    let ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let whole = |(unit, unit_ms): &&(&str, u64)| ms % unit_ms == 0 && (*unit != "d" || ms > *unit_ms);
    let (unit, unit_ms) = UNITS.iter().rev().find(whole).unwrap_or(&UNITS[0]);
    format!("{}{unit}", ms / unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_write() {
        let cases = [
            ("100ms", Some(100)),
            ("0ms", Some(0)),
            ("30s", Some(30_000)),
            ("5m", Some(300_000)),
            ("24h", Some(86_400_000)),
            ("7d", Some(604_800_000)),
            ("", None),
            ("5", None),
            ("ms", None),
            ("-5s", None),
            ("1.5s", None),
            ("5 s", None),
            ("5S", None),
            ("99999999999999999999s", None),
            ("18446744073709551615d", None),
        ];
        for (text, ms) in cases {
            assert_eq!(duration(text), ms.map(Duration::from_millis), "{text}");
        }
        for text in ["1ms", "1500ms", "90s", "24h", "36h", "2d"] {
            assert_eq!(duration_text(duration(text).unwrap()), text);
        }
        assert_eq!(duration_text(duration("1d").unwrap()), "24h");
    }
}
