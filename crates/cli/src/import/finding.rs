//! What an import counts, and what it finds that a person should know.

use indicatif::HumanCount;
use serde::{Deserialize, Serialize};
use tally::core::ObjectId;

use super::source::{Counter, Counts};

/// Sums over everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Totals {
    /// Objects with at least one member.
    pub(super) objects: u64,
    /// Members read.
    pub(super) members: u64,
    /// Edges that are new.
    pub(super) added: u64,
    /// Edges that Tally had already.
    pub(super) present: u64,
    /// Members that were not imported.
    pub(super) refused: u64,
    /// Keys that fit the pattern and are no sets.
    pub(super) skipped: u64,
    /// Old counters that were there.
    pub(super) counters: u64,
    /// Objects whose numbers disagree.
    pub(super) disagreed: u64,
    /// Edges that the objects have in Tally now.
    pub(super) edges: u64,
    /// Objects whose members were in a sorted set.
    pub(super) sorted_sets: u64,
}

/// Sums over one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Subtotal {
    pub(super) key: String,
    pub(super) object: String,
    pub(super) read: u64,
    pub(super) added: u64,
    pub(super) present: u64,
    pub(super) refused: u64,
    /// What the last answer said.
    pub(super) count: Option<i64>,
}

impl Subtotal {
    /// Nothing is read yet.
    pub(super) fn of(key: &str, object: &ObjectId) -> Self {
        let (key, object) = (key.to_owned(), object.to_string());
        Self { key, object, read: 0, added: 0, present: 0, refused: 0, count: None }
    }
}

/// Something that a person should know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Finding {
    Disagreement(Disagreement),
    Refusal(Refused),
    Skip(Skipped),
}

/// An object whose numbers are not all the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Disagreement {
    pub(super) object: String,
    /// In the old set.
    pub(super) members: u64,
    /// In the old counter.
    pub(super) counter: Option<i64>,
    /// In Tally now.
    pub(super) count: Option<i64>,
    pub(super) added: u64,
    pub(super) present: u64,
    pub(super) refused: u64,
    pub(super) why: Vec<String>,
}

/// A member that was not imported, or all of a key's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Refused {
    pub(super) key: String,
    /// Absent when it is about all of them.
    pub(super) member: Option<String>,
    pub(super) members: u64,
    pub(super) code: String,
    pub(super) reason: String,
}

/// A key that is not what the pattern promised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Skipped {
    pub(super) key: String,
    pub(super) reason: String,
}

impl Disagreement {
    /// Compares what was there with what is there now. Nothing if all is well.
    pub(super) fn of(sum: &Subtotal, old: &Counts, dry_run: bool) -> Option<Self> {
        let members = |n: u64| if n == 1 { "1 member".to_owned() } else { format!("{} members", HumanCount(n)) };
        let mut why = Vec::new();
        let counter = match &old.counter {
            Counter::Absent => None,
            Counter::Number(number) => {
                let off_by = i128::from(*number) - i128::from(old.members);
                if off_by != 0 {
                    why.push(format!("the old counter was off by {off_by:+}"));
                }
                Some(*number)
            }
            Counter::Odd(text) => {
                why.push(text.clone());
                None
            }
        };
        if sum.refused > 0 {
            let tense = if dry_run { "would be refused" } else { "refused" };
            why.push(format!("{} {tense}", members(sum.refused)));
        }
        if sum.read != old.members {
            why.push("the set changed while it was read".into());
        }
        let imported = i64::try_from(sum.added + sum.present).unwrap_or(i64::MAX);
        match sum.count {
            Some(count) if !dry_run && count > imported => {
                let more = HumanCount((count - imported).unsigned_abs());
                why.push(format!("Tally has {more} more than the set"));
            }
            Some(count) if !dry_run && count < imported => why.push("somebody took edges away meanwhile".into()),
            _ => {}
        }
        (!why.is_empty()).then(|| Self {
            object: sum.object.clone(),
            members: old.members,
            counter,
            count: sum.count,
            added: sum.added,
            present: sum.present,
            refused: sum.refused,
            why,
        })
    }
}
