//! `scale`: does an operation cost the same with a hundred times the data?

use crate::feed::tally_feed;
use crate::options::Options;
use crate::peers::tally::{self, Tally};
use crate::progress::Progress;
use crate::report::Report;
use crate::rows::{Take, fresh_edges};
use crate::workload::Shape;
use anyhow::Result;

const SMALL: u32 = 100_000;

/// Measures the same rows at 100k edges and at 10M (or `--preload`), on one store that grows.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let large = options.preload(10_000_000).max(SMALL * 2);
    let mut report = Report::new(
        "scale",
        "operations",
        format!("{SMALL} edges, then {large}, {} s a row", options.seconds()),
        &options.rows,
    );
    report.setups.push(tally::SETUP.into());
    let tally = Tally::start(options).await?;
    let mut loaded = 0;
    for (size, edges) in [("small", SMALL), ("large", large)] {
        let progress = Progress::counted(&format!("loading Tally to {edges} edges"), (edges - loaded).into());
        tally.preload("like", fresh_edges(&tally.workload, edges - loaded), |edges| progress.add(edges)).await?;
        loaded = edges;
        drop(progress);
        measure(options, &tally, size, edges, &mut report).await?;
    }
    for kind in ["single", "batch", "feed"] {
        let rate = |size| report.rows.iter().find(|row| row.id == format!("tally.{kind}.{size}")).map(|row| row.per_s);
        if let (Some(small), Some(large)) = (rate("small"), rate("large")) {
            let what = format!("{kind}: cost of an operation, large to small");
            report.figure(&format!("scale.{kind}"), &what, small / large, "x");
        }
    }
    report.finish(&options.out_folder())
}

async fn measure(options: &Options, tally: &Tally, size: &str, edges: u32, report: &mut Report) -> Result<()> {
    let memory = || tally.memory_bytes();
    let how = format!("{edges} edges");
    let id = format!("tally.single.{size}");
    let take = Take { id: &id, group: "one like per request", system: "Tally", how: &how };
    take.measure(report, memory, tally.likes(options.load(64), Shape::Zipf)).await?;
    let id = format!("tally.batch.{size}");
    let take = Take { id: &id, group: "batches of 500", system: "Tally", how: &how };
    take.measure(report, memory, tally.likes_batched(options.load(16), Shape::Zipf, 500)).await?;
    let id = format!("tally.feed.{size}");
    let take = Take { id: &id, group: "feed of 50 objects", system: "Tally", how: &how };
    take.measure(report, memory, tally_feed(options.load(64), tally)).await
}
