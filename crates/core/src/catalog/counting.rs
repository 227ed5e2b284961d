//! What is declared to be counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::nearest;
use crate::condition::Condition;
use crate::error::{Declared, Refusal};
use crate::id::Name;
use crate::limits::{LIMIT_AMOUNT_MAX, LIMIT_LOG_MAX, LIMIT_WINDOW_US_MAX};
use crate::schedule::Schedule;

/// A declared counter.
#[derive(Clone, Debug)]
pub struct CounterDef {
    /// Its name.
    pub name: Name,
    /// Asked before it is added to. The key is the object.
    pub requires: Option<Condition>,
    /// Whether it keeps when it was last added to, to the second.
    pub last_at: bool,
    /// A limit to pass first.
    pub rate_limit: Option<RateLimit>,
}

/// A declared unique count.
#[derive(Clone, Debug)]
pub struct UniqueDef {
    /// Its name.
    pub name: Name,
    /// A limit to pass first.
    pub rate_limit: Option<RateLimit>,
}

/// A declared attendance sheet.
#[derive(Clone, Debug)]
pub struct SheetDef {
    /// Its name.
    pub name: Name,
    /// Where its days end.
    pub time_zone: TimeZone,
    /// A limit to pass first.
    pub rate_limit: Option<RateLimit>,
}

/// Which rank members with equal scores have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ties {
    /// Whoever reached the score first stands first: 1, 2, 3, 4.
    #[default]
    FirstToReach,
    /// They share a rank, and the next one is as many lower: 1, 2, 2, 4.
    Shared,
    /// They share a rank, and the next one follows: 1, 2, 2, 3.
    Dense,
}

/// A declared board.
#[derive(Clone, Debug)]
pub struct BoardDef {
    /// Its name.
    pub name: Name,
    /// Ranks of equal scores.
    pub ties: Ties,
    /// When it begins anew.
    pub season: Option<Schedule>,
    /// A score is set only where it is higher than the one there is.
    pub best_of: bool,
    /// A limit to pass first.
    pub rate_limit: Option<RateLimit>,
}

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
}

/// All that is declared to be counted.
#[derive(Clone, Debug, Default)]
pub struct Counting {
    counters: BTreeMap<Name, Arc<CounterDef>>,
    uniques: BTreeMap<Name, Arc<UniqueDef>>,
    sheets: BTreeMap<Name, Arc<SheetDef>>,
    boards: BTreeMap<Name, Arc<BoardDef>>,
    limits: BTreeMap<Name, Arc<LimitDef>>,
}

/// Declaring and finding, the same for each.
macro_rules! declared {
    ($($what:ident, $declare:ident, $find:ident, $all:ident, $def:ident;)*) => {
        impl Counting {
            $(
                #[doc = concat!("Adds one of the ", stringify!($all), ", or replaces the one of the same name.")]
                pub fn $declare(&mut self, name: Name, def: $def) {
                    self.$all.insert(name, Arc::new(def));
                }

                #[doc = concat!("One of the ", stringify!($all), ", or a refusal with the nearest name there is.")]
                pub fn $find(&self, name: &Name) -> Result<&Arc<$def>, Refusal> {
                    find(&self.$all, name, Declared::$what)
                }

                #[doc = concat!("All ", stringify!($all), ", by name.")]
                pub fn $all(&self) -> impl Iterator<Item = &Arc<$def>> {
                    self.$all.values()
                }
            )*
        }
    };
}
declared! {
    Counter, declare_counter, counter, counters, CounterDef;
    Unique, declare_unique, unique, uniques, UniqueDef;
    Attendance, declare_sheet, sheet, sheets, SheetDef;
    Board, declare_board, board, boards, BoardDef;
    Limit, declare_limit, limit, limits, LimitDef;
}

fn find<'a, T>(all: &'a BTreeMap<Name, Arc<T>>, name: &Name, what: Declared) -> Result<&'a Arc<T>, Refusal> {
    all.get(name).ok_or_else(|| Refusal::NotDeclared {
        what,
        name: name.clone(),
        near: nearest(name.as_str(), all.keys().map(Name::as_str)).and_then(|near| Name::new(near).ok()),
    })
}

impl CounterDef {
    /// One with everything at its default.
    pub fn new(name: Name) -> Self {
        Self { name, requires: None, last_at: false, rate_limit: None }
    }
}

impl UniqueDef {
    /// One with everything at its default.
    pub fn new(name: Name) -> Self {
        Self { name, rate_limit: None }
    }
}

impl SheetDef {
    /// One with everything at its default: its days are those of UTC.
    pub fn new(name: Name) -> Self {
        Self { name, time_zone: TimeZone::UTC, rate_limit: None }
    }
}

impl BoardDef {
    /// One with everything at its default.
    pub fn new(name: Name) -> Self {
        Self { name, ties: Ties::default(), season: None, best_of: false, rate_limit: None }
    }
}

impl Counting {
    /// What works without any configuration: `views`, `dau`, `daily`, `points`.
    pub fn built_in() -> Self {
        let name = |text| Name::new(text).expect("built-in names are valid");
        let mut counting = Self::default();
        counting.declare_counter(name("views"), CounterDef::new(name("views")));
        counting.declare_unique(name("dau"), UniqueDef::new(name("dau")));
        counting.declare_sheet(name("daily"), SheetDef::new(name("daily")));
        counting.declare_board(name("points"), BoardDef::new(name("points")));
        counting
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
