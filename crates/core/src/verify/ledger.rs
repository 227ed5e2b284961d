//! Adds up what all rows of a store claim, however many there are, in little memory.
//!
//! The first time over the rows, facts share sums: one of a million, to which each adds what is said less what is counted, times a
//! number of its own. Where everything agrees all of them are zero, and that was it. Otherwise the rows are gone over again,
//! and of the sums that are off each fact is added up by itself; and once more, where a fact does not tell whose it is.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use std::hash::BuildHasher;

use super::fact::{Claims, Fact, Judged, Known, Owner, Wrong};
use crate::rows::{Key, Row, RowKind, TotalKey};

/// Sums that facts share, as a power of two.
const SUMS_BITS: u32 = 20;
/// Facts that are added up by themselves at once.
const FACTS_MAX: usize = 1 << 18;
/// Wrong facts that are told; the next recount tells the others.
const WRONG_MAX: usize = 100_000;

/// What rows claim. Rows and totals are given to it as often as it asks for them, each time all of them.
pub struct Ledger {
    pass: Pass,
    known: Known,
    wrong: Vec<Wrong>,
    hasher: FixedState,
    facts_max: usize,
}

enum Pass {
    /// All facts, in sums that they share, and how many of those are not zero.
    Together(Vec<u64>, usize),
    /// Those in sums that are off, each by itself.
    Each(Each),
    /// Whose they are.
    Owners(HashMap<Owner, Option<Key>>),
    Over,
}

struct Each {
    /// Sums that are off and were not gone through yet, in order.
    left: Vec<u32>,
    /// Those below this are gone through now.
    below: u32,
    facts: HashMap<Fact, (Judged, Option<Key>)>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new(FACTS_MAX)
    }
}

impl Ledger {
    /// One that adds up so many facts by themselves at once.
    fn new(facts_max: usize) -> Self {
        Self {
            pass: Pass::Together(vec![0; 1 << SUMS_BITS], 0),
            known: Known::default(),
            wrong: Vec::new(),
            hasher: FixedState::with_seed(0x7a11),
            facts_max,
        }
    }

    /// The kinds of rows that it is to be given this time, in this order. Counters and edges are none of them.
    pub fn kinds(&self) -> impl Iterator<Item = RowKind> + use<> {
        let (first, owners) = (matches!(self.pass, Pass::Together(..)), matches!(self.pass, Pass::Owners(_)));
        let wanted = move |kind: &RowKind| match first {
            // Whoever reads every row once knows that each of them can be read.
            true => *kind != RowKind::Edge && !kind.is_total(),
            false if owners => kind.is_owner(),
            false => kind.implies(),
        };
        RowKind::ALL.into_iter().filter(wanted)
    }

    /// Takes a row.
    pub fn row(&mut self, key: &Key, row: &Row) {
        row.tells(key, &mut self.known);
        let (pass, hasher, facts_max) = (&mut self.pass, &self.hasher, self.facts_max);
        if let Pass::Owners(owners) = pass {
            if let Some(found) = row.owns(key).and_then(|owner| owners.get_mut(&owner)) {
                *found = Some(key.clone());
            }
            return;
        }
        let mut put = |fact, judged| pass.put(fact, judged, Some((key, row)), hasher, facts_max);
        row.claims(key, &self.known, &mut Claims(&mut put));
    }

    /// Takes a total as it is stored. Says whether rows stand behind it that are no edges.
    pub fn total(&mut self, total: &TotalKey, stored: i64) -> bool {
        let Some(fact) = total.fact() else { return false };
        self.pass.put(fact, Judged { said: stored, counted: 0 }, None, &self.hasher, self.facts_max);
        true
    }

    /// All rows and totals were given. Whether it has to be given them once more.
    pub fn again(&mut self) -> bool {
        self.pass = match std::mem::replace(&mut self.pass, Pass::Over) {
            Pass::Together(_, 0) => Pass::Over,
            Pass::Together(sums, _) => {
                let off = (0..).zip(&sums).filter(|(_, sum)| **sum != 0).map(|(place, _)| place);
                Pass::Each(Each { left: off.collect(), below: u32::MAX, facts: HashMap::new() })
            }
            Pass::Each(mut each) => {
                self.take(&mut each);
                Pass::Each(each)
            }
            Pass::Owners(owners) => {
                for wrong in self.wrong.iter_mut().filter(|wrong| wrong.who.is_none()) {
                    wrong.who = wrong.fact.owner().and_then(|owner| owners.get(&owner).cloned().flatten());
                }
                Pass::Over
            }
            Pass::Over => Pass::Over,
        };
        if let Pass::Each(each) = &self.pass
            && (each.left.is_empty() || self.wrong.len() >= WRONG_MAX)
        {
            self.pass = self.owners();
        }
        !matches!(self.pass, Pass::Over)
    }

    /// Keeps what is wrong of those that were gone through.
    fn take(&mut self, each: &mut Each) {
        let facts = std::mem::take(&mut each.facts).into_iter();
        let wrong = facts.filter(|(_, (judged, _))| judged.said != judged.counted);
        self.wrong.extend(wrong.map(|(fact, (judged, who))| {
            let who = who.or_else(|| fact.who());
            Wrong { fact, judged, who }
        }));
        each.left.retain(|place| *place >= each.below);
        each.below = u32::MAX;
    }

    fn owners(&self) -> Pass {
        let asked = self.wrong.iter().filter(|wrong| wrong.who.is_none()).filter_map(|wrong| wrong.fact.owner());
        let owners: HashMap<Owner, Option<Key>> = asked.map(|owner| (owner, None)).collect();
        if owners.is_empty() { Pass::Over } else { Pass::Owners(owners) }
    }

    /// What is wrong, in the order in which it is to be put right.
    pub fn into_wrong(mut self) -> Vec<Wrong> {
        self.wrong.sort_by(|a, b| a.fact.cmp(&b.fact));
        self.wrong
    }
}

impl Pass {
    fn put(&mut self, fact: Fact, judged: Judged, by: Option<(&Key, &Row)>, hasher: &FixedState, facts_max: usize) {
        let hash = hasher.hash_one(&fact);
        let place = (hash >> (64 - SUMS_BITS)) as u32;
        match self {
            Self::Together(sums, off) => {
                let by = judged.said.wrapping_sub(judged.counted).cast_unsigned();
                // Odd, so that no number of times makes it nothing before all of them are used up.
                let own = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                let sum = &mut sums[place as usize];
                let was_off = *sum != 0;
                *sum = sum.wrapping_add(by.wrapping_mul(own));
                *off = *off + usize::from(*sum != 0) - usize::from(was_off);
            }
            Self::Each(each) => each.put(fact, place, judged, by, hasher, facts_max),
            Self::Owners(_) | Self::Over => {}
        }
    }
}

impl Each {
    fn put(
        &mut self,
        fact: Fact,
        place: u32,
        judged: Judged,
        by: Option<(&Key, &Row)>,
        hasher: &FixedState,
        facts_max: usize,
    ) {
        if place >= self.below || self.left.binary_search(&place).is_err() {
            return;
        }
        let who = by.filter(|(key, row)| fact.owner().is_some_and(|owner| row.owns(key) == Some(owner)));
        let (sums, is) = self.facts.entry(fact).or_default();
        sums.said = sums.said.wrapping_add(judged.said);
        sums.counted = sums.counted.wrapping_add(judged.counted);
        if let Some((key, _)) = who {
            *is = Some(key.clone());
        }
        if self.facts.len() > facts_max {
            self.leave_half(hasher);
        }
    }

    /// Leaves half of the sums for another time over the rows.
    fn leave_half(&mut self, hasher: &FixedState) {
        let now = self.left.partition_point(|place| *place < self.below);
        if now < 2 {
            return;
        }
        let below = self.left[now / 2];
        self.below = below;
        self.facts.retain(|fact, _| ((hasher.hash_one(fact) >> (64 - SUMS_BITS)) as u32) < below);
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
