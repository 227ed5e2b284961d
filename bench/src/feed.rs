//! `feed`: what one screen of a feed costs. 50 objects, two relations, and whether the viewer is in each.

use crate::load::{self, Load, Measured};
use crate::options::{Options, System};
use crate::peers::postgres::{self, Postgres, connect};
use crate::peers::redis::{self, Redis};
use crate::peers::tally::{self, Tally};
use crate::peers::{SharedWorkload, lock, redis_dialogue, tally_dialogue};
use crate::progress::Progress;
use crate::rows::{Take, fresh_edges};
use crate::workload::SUBJECTS;
use anyhow::Result;
use std::net::SocketAddr;
use std::time::Instant;

/// The relations that a feed shows.
pub(crate) const RELATIONS: [&str; 2] = ["like", "bookmark"];
const OBJECTS: usize = 50;
const GROUP: &str = "50 objects, 2 relations, viewer's flags";

/// Every object asked for, in order, with count and flag of both relations; misses are zero and false.
const FEED: &str = "
SELECT asked.place, relation.id, coalesce(total.n, 0), edge.subject IS NOT NULL
FROM unnest($1::bigint[]) WITH ORDINALITY AS asked (object, place)
CROSS JOIN (VALUES (1::smallint), (2::smallint)) AS relation (id)
LEFT JOIN total ON total.relation = relation.id AND total.object = asked.object
LEFT JOIN edge ON edge.relation = relation.id AND edge.object = asked.object AND edge.subject = $2
ORDER BY 1, 2";

/// Runs the benchmark.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let likes = options.preload(2_000_000);
    let bookmarks = likes / 4;
    let data = format!(
        "1M subjects, 100k objects by Zipf 1.0, {likes} likes and {bookmarks} bookmarks loaded first, 64 connections"
    );
    let mut report = options.report("feed", "feeds", &data);
    report.base_system = "Redis".into();
    let load = options.load(64);

    if options.wants(System::Redis) {
        let redis = Redis::start().await?;
        report.setups.push(format!("{}; a feed is one pipeline of 100 ZCARD and 100 ZSCORE", redis::SETUP));
        let progress = Progress::counted("loading Redis", (likes + bookmarks).into());
        redis.preload("like", fresh_edges(&redis.workload, likes), |edges| progress.add(edges)).await?;
        redis.preload("bookmark", fresh_edges(&redis.workload, bookmarks), |edges| progress.add(edges)).await?;
        drop(progress);
        let take = Take { id: "redis.feed", group: GROUP, system: "Redis", how: "one pipeline" };
        take.measure(&mut report, || redis.memory_bytes(), redis_feed(load, &redis)).await?;
    }
    if options.wants(System::Postgres) {
        let postgres = Postgres::start().await?;
        report.setups.push(format!(
            "{}; a feed is one prepared query over unnest, two index look-ups an object",
            postgres::SETUP
        ));
        let progress = Progress::counted("loading PostgreSQL", (likes + bookmarks).into());
        postgres.preload(1, fresh_edges(&postgres.workload, likes), |edges| progress.add(edges)).await?;
        postgres.preload(2, fresh_edges(&postgres.workload, bookmarks), |edges| progress.add(edges)).await?;
        postgres.finish_preload().await?;
        drop(progress);
        let load = Load { connections: 16, ..load };
        let take = Take { id: "postgres.feed", group: GROUP, system: "PostgreSQL", how: "one query, 16 connections" };
        let feed = postgres_feed(load, postgres.address(), postgres.workload.clone());
        take.measure(&mut report, || postgres.memory_bytes(), feed).await?;
    }
    if options.wants(System::Tally) {
        let tally = Tally::start(options).await?;
        report.setups.push(format!("{}; a feed is one `POST /v1/read`", tally::SETUP));
        let progress = Progress::counted("loading Tally", (likes + bookmarks).into());
        tally.preload("like", fresh_edges(&tally.workload, likes), |edges| progress.add(edges)).await?;
        tally.preload("bookmark", fresh_edges(&tally.workload, bookmarks), |edges| progress.add(edges)).await?;
        drop(progress);
        let take = Take { id: "tally.feed", group: GROUP, system: "Tally", how: "HTTP, one POST /v1/read" };
        take.measure(&mut report, || tally.memory_bytes(), tally_feed(load, &tally)).await?;
    }
    report.finish(&options.out_folder())
}

async fn redis_feed(load: Load, redis: &Redis) -> Result<Measured> {
    let (address, workload) = (redis.address, redis.workload.clone());
    load::run(load, async move |_, recorder| {
        load::converse(address, redis_dialogue::Feed::new(workload.clone(), OBJECTS), recorder).await
    })
    .await
}

/// The feed row of Tally, which `scale` takes too.
pub(crate) async fn tally_feed(load: Load, tally: &Tally) -> Result<Measured> {
    let (address, workload, head_tail) = (tally.address, tally.workload.clone(), tally.head_tail.clone());
    load::run(load, async move |_, recorder| {
        let feed = tally_dialogue::Feed::new(workload.clone(), OBJECTS, head_tail.clone());
        load::converse(address, feed, recorder).await
    })
    .await
}

async fn postgres_feed(load: Load, address: SocketAddr, workload: SharedWorkload) -> Result<Measured> {
    load::run(load, async move |_, recorder| {
        let client = connect(address).await?;
        let feed = client.prepare(FEED).await?;
        loop {
            let (viewer, objects) = {
                let mut workload = lock(&workload);
                let viewer = i64::from(workload.below(SUBJECTS));
                let objects: Vec<i64> = (0..OBJECTS).map(|_| i64::from(workload.object())).collect();
                (viewer, objects)
            };
            let asked = Instant::now();
            client.query(&feed, &[&objects, &viewer]).await?;
            if !recorder.answered(asked, 1) {
                return Ok(());
            }
        }
    })
    .await
}
