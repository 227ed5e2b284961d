//! What an import did and found: tables for people, JSON for programs.

use std::io::{BufWriter, ErrorKind, Write};

use indicatif::{HumanCount, HumanDuration};
use serde::ser::{Error as _, SerializeSeq};
use serde::{Deserialize, Serialize, Serializer};

use super::source::{Counter, Counts};
use super::state::{Header, State};
use crate::cli::failure::Failure;
use crate::cli::output::{cell, say, table};

/// Rows of a table that a person reads.
const ROWS_SHOWN: usize = 50;

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

/// A finished import.
pub(super) struct Report<'a> {
    pub(super) header: &'a Header,
    pub(super) totals: &'a Totals,
    pub(super) state: &'a State,
    pub(super) resumed: bool,
    pub(super) elapsed_ms: u64,
}

impl Report<'_> {
    /// Prints it.
    pub(super) fn show(&self, json: bool) -> Result<(), Failure> {
        if !json {
            return say(&self.words()?);
        }
        let mut out = BufWriter::new(std::io::stdout().lock());
        let written = serde_json::to_writer(&mut out, &self.whole()).map_err(std::io::Error::from);
        match written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn whole(&self) -> Whole<'_> {
        Whole {
            header: self.header,
            totals: self.totals,
            resumed: self.resumed,
            elapsed_ms: self.elapsed_ms,
            disagreements: Listing(self.state, |finding| match finding {
                Finding::Disagreement(found) => Some(found),
                _ => None,
            }),
            refusals: Listing(self.state, |finding| match finding {
                Finding::Refusal(found) => Some(found),
                _ => None,
            }),
            skips: Listing(self.state, |finding| match finding {
                Finding::Skip(found) => Some(found),
                _ => None,
            }),
        }
    }

    fn words(&self) -> Result<String, Failure> {
        let (totals, dry_run) = (self.totals, self.header.dry_run);
        let whole = self.whole();
        let mut parts = vec![self.sums()];
        let (rows, all) = whole.disagreements.first()?;
        let row = |found: Disagreement| {
            let why = found.why.join("; ");
            [found.object, found.members.to_string(), cell(found.counter), cell(found.count), why]
        };
        let header = ["object", "members", "old counter", "count now", "why"];
        listed(&mut parts, "Numbers that disagree:", header, rows.into_iter().map(row).collect(), all);
        let (rows, all) = whole.refusals.first()?;
        let row = |found: Refused| {
            let who = found.member.unwrap_or_else(|| format!("all {}", found.members));
            [found.key, who, format!("{}: {}", found.code, found.reason)]
        };
        let title = if dry_run { "Members that would be refused:" } else { "Members that were refused:" };
        listed(&mut parts, title, ["key", "member", "why"], rows.into_iter().map(row).collect(), all);
        let (rows, all) = whole.skips.first()?;
        let row = |found: Skipped| [found.key, found.reason];
        listed(&mut parts, "Keys that are no sets:", ["key", "why"], rows.into_iter().map(row).collect(), all);
        if totals.sorted_sets > 0 {
            parts.push("Members of sorted sets keep their order; their time is that of the import.".into());
        }
        let took = HumanDuration(std::time::Duration::from_millis(self.elapsed_ms));
        parts.push(match (dry_run, totals.refused) {
            _ if totals.members == 0 => format!("No set in {} is like {}.", self.header.source, self.header.sets),
            (true, _) => format!("A dry run: nothing was written. It took {took}."),
            (false, 0) => format!("Every member is an edge now. It took {took}."),
            (false, _) => format!("All others are edges now. It took {took}."),
        });
        Ok(parts.join("\n"))
    }

    fn sums(&self) -> String {
        let totals = self.totals;
        let mut rows = vec![("objects", totals.objects), ("members", totals.members)];
        if self.header.dry_run {
            rows.push(("members to import", totals.members.saturating_sub(totals.refused)));
            rows.push(("members that would be refused", totals.refused));
            rows.push(("edges of these objects in Tally now", totals.edges));
        } else {
            rows.push(("new edges", totals.added));
            rows.push(("edges that were there already", totals.present));
            rows.push(("members refused", totals.refused));
        }
        rows.push(("keys skipped", totals.skipped));
        rows.push(("old counters compared", totals.counters));
        rows.push(("objects whose numbers disagree", totals.disagreed));
        let rows = rows.into_iter().map(|(what, n)| [what.to_owned(), HumanCount(n).to_string()]);
        table([if self.header.dry_run { "to import" } else { "imported" }, "number"], rows.collect())
    }
}

fn listed<const N: usize>(parts: &mut Vec<String>, title: &str, header: [&str; N], rows: Vec<[String; N]>, all: u64) {
    if rows.is_empty() {
        return;
    }
    let hidden = all.saturating_sub(rows.len() as u64);
    parts.push(format!("{title}\n{}", table(header, rows)));
    if hidden > 0 {
        parts.push(format!("… and {} more; --json lists them all.", HumanCount(hidden)));
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    header: &'a Header,
    #[serde(flatten)]
    totals: &'a Totals,
    resumed: bool,
    elapsed_ms: u64,
    disagreements: Listing<'a, Disagreement>,
    refusals: Listing<'a, Refused>,
    skips: Listing<'a, Skipped>,
}

/// Findings of one sort, read from the state's file one by one.
struct Listing<'a, T>(&'a State, fn(Finding) -> Option<T>);

impl<T> Listing<'_, T> {
    /// As many as a person reads, and how many there are.
    fn first(&self) -> Result<(Vec<T>, u64), Failure> {
        let (mut some, mut all) = (Vec::new(), 0);
        for finding in self.0.findings()? {
            if let Some(found) = (self.1)(finding?) {
                all += 1;
                if some.len() < ROWS_SHOWN {
                    some.push(found);
                }
            }
        }
        Ok((some, all))
    }
}

impl<T: Serialize> Serialize for Listing<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(None)?;
        for finding in self.0.findings().map_err(S::Error::custom)? {
            if let Some(found) = (self.1)(finding.map_err(S::Error::custom)?) {
                list.serialize_element(&found)?;
            }
        }
        list.end()
    }
}
