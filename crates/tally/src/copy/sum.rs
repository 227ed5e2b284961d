//! Tells whether two stores hold the same rows, whatever order they keep them in.

use serde::Serialize;
use tally_core::hash::fingerprint;
use tally_core::rows::{JobId, Key, Row};
use tally_engine::{Engine, Range, StoreError};

use super::CopyReport;

/// Rows, added up in any order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Sum {
    pub(super) rows: u64,
    pub(super) digest: u64,
    report: CopyReport,
}

impl Sum {
    /// Reads a whole store, all but the place that a copy has reached, and what was declared: every store that was ever
    /// opened has that.
    pub(super) async fn of<E: Engine>(
        engine: &E,
        page_rows: usize,
        mut told: impl FnMut(u64),
    ) -> Result<Self, StoreError> {
        let mut sum = Self::default();
        let mut after = None;
        loop {
            let page = engine.scan(&Range::Rows { after: after.take() }, page_rows).await?;
            for (key, row) in &page.items {
                if !matches!(key, Key::Job(JobId::COPY) | Key::Names) {
                    sum.add(key, &Fingerprint::of(key, row)?);
                }
            }
            told(sum.rows);
            after = page.items.into_iter().next_back().map(|(key, _)| key);
            if !page.more || after.is_none() {
                return Ok(sum);
            }
        }
    }

    fn add(&mut self, key: &Key, print: &Fingerprint) {
        self.rows += 1;
        self.digest = self.digest.wrapping_add(print.value);
        let report = &mut self.report;
        *match key {
            Key::Edge(_) => &mut report.edges,
            Key::Object(_) => &mut report.objects,
            Key::Subject(_) => &mut report.subjects,
            Key::Replay(_) => &mut report.replays,
            Key::Job(_) => &mut report.jobs,
            Key::ApiKey(_) => &mut report.api_keys,
            _ => &mut report.counting,
        } += 1;
    }

    /// How many of each kind.
    pub(super) fn report(&self) -> CopyReport {
        CopyReport { rows: self.rows, ..self.report.clone() }
    }
}

/// What one row adds to the sum.
pub(super) struct Fingerprint {
    pub(super) value: u64,
    /// About how large the row is.
    pub(super) bytes: usize,
}

impl Fingerprint {
    /// Of a row with its key: the same in every store and on every machine.
    pub(super) fn of(key: &Key, row: &Row) -> Result<Self, StoreError> {
        let (key, row) = (json(key)?, json(&row.to_cells())?);
        Ok(Self { value: fingerprint(&[&key, &row]), bytes: key.len() + row.len() })
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|error| StoreError::Broken(format!("a row cannot be written: {error}")))
}
