//! `postgres`: Tally on PostgreSQL next to PostgreSQL by hand: a transaction per like, and the batched
//! statement that one would write instead.

use crate::likes::{begin, measure_postgres_by_hand};
use crate::options::{Options, System};
use crate::peers::in_process::InProcess;
use crate::peers::postgres::Postgres;
use crate::peers::tally::Tally;
use crate::progress::Progress;
use crate::report::Report;
use crate::rows::{Take, fresh_edges};
use crate::workload::Shape;
use anyhow::Result;

const ZIPF: &str = "likes by Zipf";
const HOT: &str = "one hot post";
/// Likes in flight on each server.
const CALLERS: usize = 1_024;

/// How this system is set up, for the report.
const SETUP: &str = "Tally on PostgreSQL: the `tally` crate or `tally serve` with store = postgres://, on a cluster set up as the peer's \
(own instance, same settings), text ids, three orderings and counts as always; several servers are several stores opened on one schema";

/// Runs the benchmark.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let (preload, mut report) = begin(options, "postgres");
    if options.wants(System::Postgres) {
        measure_postgres_by_hand(options, preload, [ZIPF, ZIPF, HOT, HOT], &mut report).await?;
    }
    if options.wants(System::Tally) {
        measure_tally(options, preload, &mut report).await?;
    }
    report.finish(&options.out_folder())
}

async fn measure_tally(options: &Options, preload: u32, report: &mut Report) -> Result<()> {
    report.setups.push(SETUP.into());
    let database = Postgres::start().await?;
    let url = format!("{}?sslmode=disable", database.url());
    // The first to open it makes the tables.
    InProcess::open_at(std::slice::from_ref(&url)).await?.close().await;
    let progress = Progress::counted("loading Tally on PostgreSQL", preload.into());
    database.preload_tally(fresh_edges(&database.workload, preload), |edges| progress.add(edges)).await?;
    drop(progress);
    let per_like = database.tally_disk_bytes().await? as f64 / f64::from(preload);
    report.figure("tally.postgres.bytes_per_like", "Tally on PostgreSQL: bytes per like on disk", per_like, "bytes");

    let memory = || database.memory_bytes();
    for servers in [1, 2, 4] {
        let tally = InProcess::open_at(&vec![url.clone(); servers]).await?.with_workload(&database.workload);
        for (kind, group, shape) in [("zipf", ZIPF, Shape::Zipf), ("hot", HOT, Shape::Hot)] {
            let how = format!("library, {servers} server(s), a user's likes to one of them, {CALLERS} callers each");
            let id = format!("tally.postgres.{kind}.{servers}");
            let take = Take { id: &id, group, system: "Tally on PostgreSQL", how: &how };
            take.measure(report, memory, tally.likes_by_user(options.load(CALLERS * servers), shape)).await?;
            if servers > 1 {
                let how = format!("library, {servers} servers, repeats to any of them, {CALLERS} callers each");
                let id = format!("tally.postgres.{kind}.{servers}.any");
                let take = Take { id: &id, group, system: "Tally on PostgreSQL", how: &how };
                take.measure(report, memory, tally.likes(options.load(CALLERS * servers), shape)).await?;
            }
        }
        tally.close().await;
    }
    let tally = Tally::start_at(options, &url).await?.with_workload(&database.workload);
    for (kind, group, shape) in [("zipf", ZIPF, Shape::Zipf), ("hot", HOT, Shape::Hot)] {
        for connections in [64, 256] {
            let how = format!("HTTP, 1 server, {connections} connections");
            let id = format!("tally.postgres.{kind}.http.{connections}");
            let take = Take { id: &id, group, system: "Tally on PostgreSQL", how: &how };
            take.measure(report, memory, tally.likes(options.load(connections), shape)).await?;
        }
        let id = format!("tally.postgres.{kind}.http.batch");
        let take = Take { id: &id, group, system: "Tally on PostgreSQL", how: "HTTP, batches of 500, 16 connections" };
        take.measure(report, memory, tally.likes_batched(options.load(16), shape, 500)).await?;
    }
    Ok(())
}
