//! What can be declared of a limit.

use std::sync::Arc;

use crate::limits::{LIMIT_AMOUNT_MAX, LIMIT_LOG_MAX, LIMIT_WINDOW_US_MAX};

/// How a limit is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// Every use is remembered until it is a window old. Exact.
    #[default]
    SlidingLog,
    /// Two numbers: the last window counts by the part of it that is still within reach.
    SlidingWindow,
    /// A bucket that fills steadily (GCRA): bursts up to the amount, then an even flow.
    TokenBucket,
}

/// So much in so long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitDef {
    /// Its name, or that of the capability which has it, such as `relations.like`.
    pub name: String,
    /// How much.
    pub amount: u64,
    /// In how many microseconds.
    pub window_us: u64,
    /// How it is counted.
    pub algorithm: Algorithm,
}

/// Whose uses are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Per {
    /// Each subject's, or each member's.
    #[default]
    Subject,
    /// Those of each object, or of each key.
    Object,
    /// Everybody's.
    All,
}

/// A limit that a write has to pass first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateLimit {
    /// The limit.
    pub limit: Arc<LimitDef>,
    /// Whose uses are counted together.
    pub per: Per,
}

impl LimitDef {
    /// Reads `100/min`, `5/10s`, `1000/day`.
    pub fn parse(name: &str, rate: &str, algorithm: Option<Algorithm>) -> Result<Self, String> {
        let wrong =
            || format!("`{rate}` is not a rate; write an amount and a time, such as 100/min, 5/10s or 1000/day");
        let (amount, window) = rate.split_once('/').ok_or_else(wrong)?;
        let (amount, window) = (amount.trim(), window.trim());
        let digits = window.len() - window.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let count: u64 = if digits == 0 { 1 } else { window[..digits].parse().map_err(|_| wrong())? };
        let unit_us: u64 = match window[digits..].trim() {
            "ms" => 1_000,
            "s" | "sec" | "second" | "seconds" => 1_000_000,
            "m" | "min" | "minute" | "minutes" => 60_000_000,
            "h" | "hour" | "hours" => 3_600_000_000,
            "d" | "day" | "days" => 86_400_000_000,
            _ => return Err(wrong()),
        };
        let amount: u64 = amount.parse().map_err(|_| wrong())?;
        let window_us = count.saturating_mul(unit_us);
        if amount == 0 || amount > LIMIT_AMOUNT_MAX || window_us == 0 || window_us > LIMIT_WINDOW_US_MAX {
            return Err(format!("`{rate}` is out of bounds: 1 to {LIMIT_AMOUNT_MAX}, in 1 ms to 400 days"));
        }
        if algorithm == Some(Algorithm::SlidingLog) && amount > LIMIT_LOG_MAX {
            return Err(format!(
                "a sliding log remembers every use, so it takes at most {LIMIT_LOG_MAX}; \
                 above that choose algorithm = \"sliding_window\" or \"token_bucket\""
            ));
        }
        let fitting = if amount > LIMIT_LOG_MAX { Algorithm::SlidingWindow } else { Algorithm::SlidingLog };
        Ok(Self { name: name.to_owned(), amount, window_us, algorithm: algorithm.unwrap_or(fitting) })
    }

    /// It is one itself, and has to pass none.
    pub(crate) fn passes(&self) -> Option<&RateLimit> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        let read = |text: &str| LimitDef::parse("x", text, None).map(|limit| (limit.amount, limit.window_us));
        assert_eq!(read("100/min"), Ok((100, 60_000_000)));
        assert_eq!(read("5/10s"), Ok((5, 10_000_000)));
        assert_eq!(read(" 1000 / day "), Ok((1_000, 86_400_000_000)));
        assert_eq!(read("3/250ms"), Ok((3, 250_000)));
        for wrong in ["", "100", "0/min", "-1/min", "1/0s", "1/fortnight", "1.5/s", "5/401d", "1000000000000/s", "5/ÿ"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_log_is_bounded() {
        let parse = |algorithm| LimitDef::parse("x", "1001/min", algorithm);
        assert!(parse(Some(Algorithm::SlidingLog)).unwrap_err().contains("sliding_window"));
        assert_eq!(parse(None).unwrap().algorithm, Algorithm::SlidingWindow);
        assert_eq!(LimitDef::parse("x", "1000/min", None).unwrap().algorithm, Algorithm::SlidingLog);
    }
}
