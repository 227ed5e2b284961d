//! The store that all servers share: the oracle with a clock, leases, and a record of what was so when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tally::core::hash::fingerprint;
use tally::core::rows::{Changes, Key, Row, TotalKey};
use tally::core::time::{Stamp, Timestamp};
use tally::core::view::{Reading, View, Wants};
use tally::engine::memory::Memory;
use tally::engine::{CommitError, Committed, Engine, Loaded, Mark, Seen};
use tokio::time::Instant;

use crate::clock::SimClock;
use crate::leases::Leases;
use crate::now;
use crate::plan::{Flaw, Plan};
use crate::random::Random;

/// A stamp may be so far ahead of the store's clock: a batch has as many as it has commands.
const AHEAD_US_MAX: u64 = 1_000_000;

/// One store.
pub(crate) struct Store {
    pub(crate) memory: Memory,
    pub(crate) random: Arc<Random>,
    /// The first is the store's; with a flaw they all are.
    parts: Vec<SimClock>,
    flaw: Flaw,
    pub(crate) reading: Reading,
    pub(crate) in_parts: bool,
    pub(crate) leases: Leases,
    record: Mutex<Record>,
}

/// What was so when, as only a store can know it.
#[derive(Default)]
pub(crate) struct Record {
    /// Each value of each total, from when on.
    pub(crate) totals: BTreeMap<TotalKey, Vec<(Instant, i64)>>,
    /// When a key stopped working.
    pub(crate) revoked: BTreeMap<String, Instant>,
    /// When each edge that is there was made.
    pub(crate) edges: BTreeMap<Key, Instant>,
    /// What must not be.
    pub(crate) problems: Vec<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    pub(crate) fn new(random: Arc<Random>, plan: &Plan) -> Self {
        let begin = Instant::now();
        let parts = plan.parts.iter().map(|ahead_us| SimClock::new(begin, *ahead_us, 0)).collect();
        let (leases, record) = (Leases::new(plan.flaw == Flaw::LeasesForEver), Mutex::default());
        let (flaw, reading, in_parts) = (plan.flaw, plan.reading, plan.in_parts);
        Self { memory: Memory::default(), random, parts, flaw, reading, in_parts, leases, record }
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        lock(&self.record)
    }

    /// What time it is.
    pub(crate) fn time(&self) -> Timestamp {
        self.parts[0].stamp().time()
    }

    pub(crate) fn problem(&self, what: String) {
        self.record().problems.push(what);
    }

    pub(crate) fn load(&self, wants: &Wants, server: &SimClock) -> Loaded {
        let mut loaded = now(self.memory.load(wants)).expect("memory does not fail");
        loaded.now = Some(match self.flaw {
            Flaw::OwnTime if wants.is_empty() => server.stamp(),
            Flaw::TimesOfParts => self.time_of_parts(wants),
            _ => self.parts[0].stamp(),
        });
        loaded
    }

    /// Where a row is.
    fn part(&self, key: &Key) -> usize {
        let id = match key {
            Key::Edge(edge) => edge.object.as_str(),
            Key::Subject(subject) => subject.as_str(),
            _ => return 0,
        };
        fingerprint(&[id.as_bytes()]) as usize % self.parts.len()
    }

    /// What is asked of one part, and at which places of the whole its answers belong. Totals and ranks are in the first.
    pub(crate) fn wants_of(&self, part: usize, wants: &Wants) -> (Wants, Vec<usize>) {
        let here = wants.rows.iter().enumerate().filter(|(_, key)| self.part(key) == part);
        let (places, rows) = here.map(|(place, key)| (place, key.clone())).unzip();
        let first = if part == 0 { Wants { rows: Vec::new(), ..wants.clone() } } else { Wants::default() };
        (Wants { rows, ..first }, places)
    }

    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    fn time_of_parts(&self, wants: &Wants) -> Stamp {
        let asked = wants.rows.iter().map(|key| self.parts[self.part(key)].stamp());
        asked.max().unwrap_or_else(|| self.parts[0].stamp())
    }

    pub(crate) fn commit(&self, seen: Seen<'_>, changes: &Changes) -> Result<Committed, CommitError> {
        let nothing = View::default();
        let seen = if self.flaw == Flaw::ChecksNothing { Seen { mark: seen.mark, view: &nothing } } else { seen };
        if self.flaw == Flaw::LosesCommits && self.random.percent(3) {
            let totals = changes.adds.iter().map(|(key, by)| seen.view.final_total(key).unwrap_or(*by)).collect();
            return Ok(Committed { mark: Mark::default(), totals: Some(totals), ranks: None, numbers: Vec::new() });
        }
        let committed = now(self.memory.commit(seen, changes))?;
        self.write_down(changes, committed.totals.as_deref().unwrap_or_default());
        Ok(committed)
    }

    fn write_down(&self, changes: &Changes, totals: &[i64]) {
        let (at, mut record) = (Instant::now(), self.record());
        for ((key, _), value) in changes.adds.iter().zip(totals) {
            record.totals.entry(key.clone()).or_default().push((at, *value));
        }
        for (key, change) in &changes.rows {
            match (key, &change.after) {
                (Key::ApiKey(id), Some(Row::ApiKey(key))) if key.revoked_at.is_some() => {
                    record.revoked.entry(id.clone()).or_insert(at);
                }
                // One commit may take an edge away and make it anew.
                (Key::Edge(_), Some(Row::Edge(edge))) if !matches!(&change.before, Some(Row::Edge(before)) if before.created == edge.created) =>
                {
                    record.edges.insert(key.clone(), at);
                }
                (Key::Edge(_), None) => _ = record.edges.remove(key),
                _ => {}
            }
        }
        let (stamp, time) = (changes.stamp.0, self.parts[0].stamp().0);
        if self.flaw != Flaw::TimesOfParts && stamp > time + AHEAD_US_MAX {
            record.problems.push(format!("a commit is stamped {} s ahead of the store", (stamp - time) / 1_000_000));
        }
    }
}
