//! `redis`: Tally on Redis next to the script that one would write by hand, on a server set up alike.

use crate::likes::{begin, measure_redis_by_hand};
use crate::options::{Options, System};
use crate::peers::in_process::InProcess;
use crate::peers::redis::{Durability, Redis};
use crate::peers::tally::Tally;
use crate::progress::Progress;
use crate::report::Report;
use crate::rows::{Take, fresh_edges};
use crate::workload::Shape;
use anyhow::Result;
use tally_testing::{Cluster, ClusterOptions};

const ZIPF: &str = "likes by Zipf";
const HOT: &str = "one hot post";
const CLUSTER: &str = "a Cluster of three masters and three replicas, all on this machine";
/// Likes in flight on each server.
const CALLERS: usize = 1_024;
const SHAPES: [(&str, &str, Shape); 2] = [("zipf", ZIPF, Shape::Zipf), ("hot", HOT, Shape::Hot)];

/// How this system is set up, for the report.
const SETUP: &str = "Tally on Redis: the `tally` crate or `tally serve` with store = redis://, on a server set up as the peer's (own \
instance, same settings); several servers are several stores opened on one Redis";
const CLUSTER_SETUP: &str = "Tally on a Cluster: every like is a commit over two slots, all or nothing; no AOF, no wait for replicas; \
six nodes, Tally and the load share the processors";

/// Runs the benchmark.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let (preload, mut report) = begin(options, "redis");
    let modes = [Durability::NoAof, Durability::Always];
    if options.wants(System::Redis) {
        measure_redis_by_hand(options, preload, &modes, [ZIPF, ZIPF, HOT, HOT], &mut report).await?;
    }
    if options.wants(System::Tally) {
        measure_tally(options, preload, &modes, &mut report).await?;
        measure_cluster(options, &mut report).await?;
    }
    report.finish(&options.out_folder())
}

async fn measure_tally(options: &Options, preload: u32, modes: &[Durability], report: &mut Report) -> Result<()> {
    report.setups.push(SETUP.into());
    let redis = Redis::start().await?;
    let loading = InProcess::open_at(&[redis.url()]).await?.with_workload(&redis.workload);
    let progress = Progress::counted("loading Tally on Redis", preload.into());
    loading.preload(fresh_edges(&redis.workload, preload), |edges| progress.add(edges)).await?;
    drop(progress);
    loading.close().await;
    let per_like = redis.memory_bytes() as f64 / f64::from(preload);
    report.figure("tally.redis.memory_per_like", "Tally on Redis: memory per like", per_like, "bytes");

    let memory = || redis.memory_bytes();
    for durability in modes {
        redis.set_durability(*durability).await?;
        let (mode, system) = (durability.id(), format!("Tally on {}", durability.name()));
        for servers in [1, 2, 4] {
            let tally =
                InProcess::open_at(&vec![options.tuned(redis.url()); servers]).await?.with_workload(&redis.workload);
            for (kind, group, shape) in SHAPES {
                let how = format!("library, {servers} server(s), {CALLERS} callers each");
                let id = format!("tally.redis.{mode}.{kind}.{servers}");
                let take = Take { id: &id, group, system: &system, how: &how };
                take.measure(report, memory, tally.likes(options.load(CALLERS * servers), shape)).await?;
            }
            tally.close().await;
        }
        let tally = Tally::start_at(options, &options.tuned(redis.url())).await?.with_workload(&redis.workload);
        for (kind, group, shape) in SHAPES {
            for connections in [64, 256] {
                let how = format!("HTTP, 1 server, {connections} connections");
                let id = format!("tally.redis.{mode}.{kind}.http.{connections}");
                let take = Take { id: &id, group, system: &system, how: &how };
                take.measure(report, memory, tally.likes(options.load(connections), shape)).await?;
            }
            let id = format!("tally.redis.{mode}.{kind}.http.batch");
            let take = Take { id: &id, group, system: &system, how: "HTTP, batches of 500, 16 connections" };
            take.measure(report, memory, tally.likes_batched(options.load(16), shape, 500)).await?;
        }
    }
    Ok(())
}

async fn measure_cluster(options: &Options, report: &mut Report) -> Result<()> {
    report.setups.push(CLUSTER_SETUP.into());
    let cluster = tokio::task::spawn_blocking(|| Cluster::start(ClusterOptions::shared())).await??;
    let tally = InProcess::open_at(&[cluster.url()]).await?;
    for (kind, _, shape) in SHAPES {
        let how = format!("library, 1 server, {CALLERS} callers, {kind}");
        let id = format!("tally.cluster.{kind}");
        let take = Take { id: &id, group: CLUSTER, system: "Tally on a Cluster", how: &how };
        take.measure(report, || cluster.memory_bytes(), tally.likes(options.load(CALLERS), shape)).await?;
    }
    tally.close().await;
    Ok(())
}
