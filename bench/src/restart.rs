//! `restart`: how long Tally takes to be ready again after kill -9, with a full store.

use crate::options::Options;
use crate::peers::tally::{self, Tally};
use crate::progress::Progress;
use crate::report::Report;
use crate::rows::fresh_edges;
use crate::workload::Shape;
use anyhow::Result;

/// Kills are repeated, because what is left to replay differs each time; the worst one counts.
const KILLS: usize = 5;

/// Loads, then kills under load and starts again.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let edges = options.preload(10_000_000);
    let mut report = Report::new(
        "restart",
        "likes",
        format!("{edges} edges loaded, then {KILLS} times: likes, kill -9, start"),
        &options.rows,
    );
    report.setups.push(tally::SETUP.into());
    let mut tally = Tally::start(options).await?;
    let progress = Progress::counted("loading Tally", edges.into());
    tally.preload("like", fresh_edges(&tally.workload, edges), |edges| progress.add(edges)).await?;
    drop(progress);
    let per_like = tally.disk_bytes() as f64 / f64::from(edges);
    report.figure("restart.bytes_per_like", "bytes per like on disk", per_like, "bytes");

    let mut seconds = Vec::new();
    for kill in 1..=KILLS {
        let _progress = Progress::spinner(&format!("kill {kill} of {KILLS}"));
        tally.likes_batched(options.load(16), Shape::Zipf, 500).await?;
        let (again, taken) = tally.restart_after_kill().await?;
        tally = again;
        // Ready means that it answers, not only that it listens.
        tally.get("/v1/relations/like/post:0").await?;
        seconds.push(taken.as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    report.figure("restart.median_seconds", "start after kill -9, median", seconds[KILLS / 2], "s");
    report.figure("restart.seconds", "start after kill -9, worst", seconds[KILLS - 1], "s");
    report.figure("restart.memory", "memory after the start", tally.memory_bytes() as f64 / 1e6, "MB");
    report.finish(&options.out_folder())
}
