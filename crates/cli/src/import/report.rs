//! What an import did and found: tables for people, JSON for programs.

use std::io::{BufWriter, ErrorKind, Write};

use indicatif::{HumanCount, HumanDuration};
use serde::ser::{Error as _, SerializeSeq};
use serde::{Serialize, Serializer};

use super::finding::{Disagreement, Finding, Refused, Skipped, Totals};
use super::state::{Header, State};
use crate::failure::Failure;
use crate::output::{cell, say, table};

/// Rows of a table that a person reads.
const ROWS_SHOWN: usize = 50;

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
