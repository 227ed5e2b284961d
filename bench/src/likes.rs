//! `likes`: how many likes a second, one per request, many per request, and on one hot post.

use crate::options::{Options, System};
use crate::peers::in_process::{self, InProcess};
use crate::peers::postgres::{self, Postgres};
use crate::peers::redis::{self, Durability, Redis};
use crate::peers::tally::{self, Tally};
use crate::progress::Progress;
use crate::report::Report;
use crate::rows::{Take, fresh_edges};
use crate::workload::Shape;
use anyhow::Result;

const SINGLE: &str = "one like per request";
const MANY: &str = "many likes per request";
const HOT: &str = "one hot post, one like per request";
const HOT_MANY: &str = "one hot post, many likes per request";
const REPEATED: &str = "repeated likes (no change), one per request";
const IN_PROCESS: &str = "in process, one like per call";
/// As many likes in flight as the pipelined Redis rows have.
const CALLERS: usize = 64 * IN_FLIGHT;
const BATCH: usize = 500;
const IN_FLIGHT: usize = 16;

/// Runs the benchmark.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let (preload, mut report) = begin(options, "likes");
    // One system at a time: on a small machine an idle neighbour still takes caches and disk.
    if options.wants(System::Redis) {
        let modes = [Durability::NoAof, Durability::Everysec, Durability::Always];
        measure_redis_by_hand(options, preload, &modes, [SINGLE, MANY, HOT, HOT_MANY], &mut report).await?;
    }
    if options.wants(System::Postgres) {
        measure_postgres_by_hand(options, preload, [SINGLE, MANY, HOT, HOT_MANY], &mut report).await?;
    }
    if options.wants(System::Tally) {
        measure_tally(options, preload, &mut report).await?;
    }
    if options.wants(System::InProcess) {
        measure_in_process(options, preload, &mut report).await?;
    }
    report.finish(&options.out_folder())
}

/// How many edges a benchmark of likes loads first, and its report.
pub(crate) fn begin(options: &Options, bench: &str) -> (u32, Report) {
    let preload = options.preload(2_000_000);
    let data = format!("1M subjects, 100k objects by Zipf 1.0, 10 % repeats, {preload} edges loaded first");
    (preload, options.report(bench, "likes", &data))
}

/// The script that one writes by hand, one and many in flight, by Zipf and on one hot post.
pub(crate) async fn measure_redis_by_hand(
    options: &Options,
    preload: u32,
    modes: &[Durability],
    groups: [&str; 4],
    report: &mut Report,
) -> Result<()> {
    let [single, many, hot, hot_many] = groups;
    let redis = Redis::start().await?;
    report.setups.push(redis::SETUP.into());
    let progress = Progress::counted("loading Redis", preload.into());
    redis.preload("like", fresh_edges(&redis.workload, preload), |edges| progress.add(edges)).await?;
    drop(progress);
    let per_like = redis.memory_bytes() as f64 / f64::from(preload);
    report.figure("redis.memory_per_like", "Redis: memory per like", per_like, "bytes");

    let memory = || redis.memory_bytes();
    for durability in modes {
        redis.set_durability(*durability).await?;
        let (name, system) = (durability.id(), durability.name());
        let shapes = [
            ("single", single, Shape::Zipf, 1),
            ("pipelined", many, Shape::Zipf, IN_FLIGHT),
            ("hot", hot, Shape::Hot, 1),
            ("hot_pipelined", hot_many, Shape::Hot, IN_FLIGHT),
        ];
        for (kind, group, shape, in_flight) in shapes {
            let how = format!("64 connections, {in_flight} in flight each");
            let id = format!("redis.{name}.{kind}");
            let take = Take { id: &id, group, system, how: &how };
            take.measure(report, memory, redis.likes(options.load(64), shape, in_flight)).await?;
        }
    }
    report.figure("redis.log_bytes", "Redis: log on disk at the end", redis.disk_bytes() as f64 / 1e6, "MB");
    Ok(())
}

/// A transaction per like and the batched statement, by Zipf and on one hot post; `groups` names the
/// groups of the four: single, batched, hot single, hot batched.
pub(crate) async fn measure_postgres_by_hand(
    options: &Options,
    preload: u32,
    groups: [&str; 4],
    report: &mut Report,
) -> Result<()> {
    let [single, many, hot, hot_many] = groups;
    let postgres = Postgres::start().await?;
    report.setups.push(postgres::SETUP.into());
    let progress = Progress::counted("loading PostgreSQL", preload.into());
    postgres.preload(1, fresh_edges(&postgres.workload, preload), |edges| progress.add(edges)).await?;
    postgres.finish_preload().await?;
    drop(progress);
    let per_like = postgres.disk_bytes().await? as f64 / f64::from(preload);
    report.figure("postgres.bytes_per_like", "PostgreSQL: bytes per like on disk", per_like, "bytes");

    let memory = || postgres.memory_bytes();
    for (kind, group, shape) in [("single", single, Shape::Zipf), ("hot", hot, Shape::Hot)] {
        for connections in [16, 64] {
            let how = format!("a transaction per like, {connections} connections");
            let id = format!("postgres.{kind}.{connections}");
            let take = Take { id: &id, group, system: "PostgreSQL", how: &how };
            take.measure(report, memory, postgres.likes(options.load(connections), shape)).await?;
        }
    }
    for (kind, group, shape) in [("batch", many, Shape::Zipf), ("hot_batch", hot_many, Shape::Hot)] {
        let how = format!("unnest, {BATCH} a statement, 4 connections");
        let id = format!("postgres.{kind}");
        let take = Take { id: &id, group, system: "PostgreSQL", how: &how };
        take.measure(report, memory, postgres.likes_batched(options.load(4), shape, BATCH)).await?;
    }
    Ok(())
}

async fn measure_tally(options: &Options, preload: u32, report: &mut Report) -> Result<()> {
    let tally = Tally::start(options).await?;
    report.setups.push(tally::SETUP.into());
    let progress = Progress::counted("loading Tally", preload.into());
    tally.preload("like", fresh_edges(&tally.workload, preload), |edges| progress.add(edges)).await?;
    drop(progress);
    let per_like = tally.disk_bytes() as f64 / f64::from(preload);
    report.figure("tally.bytes_per_like", "Tally: bytes per like on disk", per_like, "bytes");

    let memory = || tally.memory_bytes();
    for (kind, group, shape) in [("single", SINGLE, Shape::Zipf), ("hot", HOT, Shape::Hot)] {
        for connections in [64, 256] {
            let how = format!("HTTP, {connections} connections");
            let id = format!("tally.{kind}.{connections}");
            let take = Take { id: &id, group, system: "Tally", how: &how };
            take.measure(report, memory, tally.likes(options.load(connections), shape)).await?;
        }
    }
    for (kind, group, shape) in [("batch", MANY, Shape::Zipf), ("hot_batch", HOT_MANY, Shape::Hot)] {
        let how = format!("HTTP, batches of {BATCH}, 16 connections");
        let id = format!("tally.{kind}");
        let take = Take { id: &id, group, system: "Tally", how: &how };
        take.measure(report, memory, tally.likes_batched(options.load(16), shape, BATCH)).await?;
    }
    let take = Take { id: "tally.repeated", group: REPEATED, system: "Tally", how: "HTTP, 64 connections" };
    take.measure(report, memory, tally.likes(options.load(64), Shape::Repeated)).await
}

async fn measure_in_process(options: &Options, preload: u32, report: &mut Report) -> Result<()> {
    let tally = InProcess::open().await?;
    report.setups.push(in_process::SETUP.into());
    let progress = Progress::counted("loading Tally in process", preload.into());
    tally.preload(fresh_edges(&tally.workload, preload), |edges| progress.add(edges)).await?;
    drop(progress);
    let memory = || tally.memory_bytes();
    let how = format!("{CALLERS} callers");
    for (id, group, shape) in
        [("tally.process", IN_PROCESS, Shape::Zipf), ("tally.process.hot", "in process, one hot post", Shape::Hot)]
    {
        let take = Take { id, group, system: "Tally", how: &how };
        take.measure(report, memory, tally.likes(options.load(CALLERS), shape)).await?;
    }
    tally.close().await;
    Ok(())
}
