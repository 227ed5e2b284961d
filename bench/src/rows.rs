//! Taking rows: the little around each measurement that is the same everywhere.

use crate::load::Measured;
use crate::peers::{SharedWorkload, lock};
use crate::progress::Progress;
use crate::report::{Report, Row};
use anyhow::{Context, Result};

/// One row to take: its names, then what measures it.
pub(crate) struct Take<'a> {
    pub(crate) id: &'a str,
    pub(crate) group: &'a str,
    pub(crate) system: &'a str,
    pub(crate) how: &'a str,
}

impl Take<'_> {
    /// Measures, and adds the row to the report. A row that was not asked for is passed over.
    pub(crate) async fn measure(
        self,
        report: &mut Report,
        memory_bytes: impl Fn() -> u64,
        measuring: impl Future<Output = Result<Measured>>,
    ) -> Result<()> {
        if !report.wants(self.id) {
            return Ok(());
        }
        let progress = Progress::spinner(&format!("{}: {} ({})", self.system, self.group, self.how));
        let measured = measuring.await.with_context(|| format!("measuring {}", self.id))?;
        drop(progress);
        let row = Row::new(self.id, self.group, self.system, self.how, &measured, memory_bytes());
        eprintln!("  {:<28} {:>10.0}/s", row.id, row.per_s);
        report.rows.push(row);
        Ok(())
    }
}

/// So many fresh edges of a workload.
pub(crate) fn fresh_edges(workload: &SharedWorkload, count: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
    let workload = workload.clone();
    (0..count).map(move |_| {
        let edge = lock(&workload).fresh();
        (edge.object, edge.subject)
    })
}
