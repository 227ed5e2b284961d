//! `rooms`: joins with an exact position next to a queue by hand on Redis; a burst, polls, and tickets that are followed.

mod burst;
mod by_hand;
mod hall;

use std::sync::Arc;

use anyhow::Result;
use hall::{Hall, held};

use crate::options::{Options, System};
use crate::peers::in_process::InProcess;
use crate::peers::postgres::Postgres;
use crate::peers::redis::{Durability, Redis};
use crate::progress::Progress;
use crate::report::Report;
use crate::rows::Take;

const JOINS: &str = "joins with their exact position";
const POLLS: &str = "polls of who waits";
/// Joins in flight on each server.
const CALLERS: usize = 1_024;

/// How this system is set up, for the report.
const SETUP: &str = "Tally in process: the `tally` crate; embedded with a sync before every answer; Redis and PostgreSQL set up as the \
peer's (own instances; AOF always; PostgreSQL as it comes, with synchronous_commit on); several servers are several stores opened on one; \
every position of every join is checked against its number";

/// Runs the benchmark.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let waiting = options.preload(1_000_000);
    let data = format!("one room in which everybody waits, a burst of {waiting}");
    let mut report = options.report("rooms", "joins", &data);
    if options.wants(System::Redis) {
        redis_by_hand(options, waiting, &mut report).await?;
    }
    if options.wants(System::InProcess) {
        report.setups.push(SETUP.into());
        on_redis(options, &mut report).await?;
        on_postgres(options, &mut report).await?;
        embedded(options, waiting, &mut report).await?;
    }
    report.finish(&options.out_folder())
}

async fn redis_by_hand(options: &Options, waiting: u32, report: &mut Report) -> Result<()> {
    report.setups.push(by_hand::SETUP.into());
    let redis = Redis::start().await?;
    redis.set_durability(Durability::Always).await?;
    let how = format!("script, {} connections, {CALLERS} in flight", by_hand::CONNECTIONS);
    let take = Take { id: "redis.always.join", group: JOINS, system: Durability::Always.name(), how: &how };
    let load = options.load(by_hand::CONNECTIONS);
    take.measure(report, || redis.memory_bytes(), by_hand::joins(&redis, load, CALLERS)).await?;
    let wrong = by_hand::misplaced(&redis, u64::from(waiting.min(100_000))).await?;
    report.figure("redis.wrong", "positions told that were not the place of arrival, by hand", wrong, "%");
    Ok(())
}

/// One row of joins, on so many servers.
async fn joins(options: &Options, report: &mut Report, urls: &[String], (id, system): (&str, &str)) -> Result<()> {
    let servers = urls.len();
    let how = format!("library, {servers} server(s), {CALLERS} callers each");
    let take = Take { id, group: JOINS, system, how: &how };
    if !report.wants(id) {
        return Ok(());
    }
    let tally = InProcess::open_at(urls).await?;
    let hall = Hall::make(tally.servers(), &format!("sale{servers}"), held()).await?;
    take.measure(report, || tally.memory_bytes(), hall.joins(options.load(CALLERS * servers))).await?;
    tally.close().await;
    Ok(())
}

async fn on_redis(options: &Options, report: &mut Report) -> Result<()> {
    let redis = Redis::start().await?;
    redis.set_durability(Durability::Always).await?;
    for servers in [1, 2] {
        let urls = vec![options.tuned(redis.url()); servers];
        let id = format!("tally.redis.always.join.{servers}");
        joins(options, report, &urls, (&id, "Tally on Redis, AOF always")).await?;
    }
    Ok(())
}

async fn on_postgres(options: &Options, report: &mut Report) -> Result<()> {
    let database = Postgres::start().await?;
    for servers in [1, 3] {
        let urls = vec![format!("{}?sslmode=disable", database.url()); servers];
        let id = format!("tally.postgres.join.{servers}");
        joins(options, report, &urls, (&id, "Tally on PostgreSQL")).await?;
    }
    Ok(())
}

async fn embedded(options: &Options, waiting: u32, report: &mut Report) -> Result<()> {
    let tally = InProcess::open().await?;
    let memory = || tally.memory_bytes();
    let hall = Hall::make(tally.servers(), "joins", held()).await?;
    let how = format!("library, {CALLERS} callers");
    let take = Take { id: "tally.embedded.join", group: JOINS, system: "Tally, embedded", how: &how };
    take.measure(report, memory, hall.joins(options.load(CALLERS))).await?;

    let hall = Hall::make(tally.servers(), "burst", held()).await?;
    let tickets = {
        let progress = Progress::counted("a burst of joins", waiting.into());
        Arc::new(burst::joins(report, &hall, waiting.into(), CALLERS, |more| progress.add(more)).await?)
    };
    burst::position(report, &hall, &tickets).await?;
    let take = Take { id: "tally.embedded.poll", group: POLLS, system: "Tally, embedded", how: "library, 64 callers" };
    take.measure(report, memory, hall.polls(options.load(64), tickets.clone())).await?;
    burst::watches(report, &hall, &tickets, if options.is_quick() { 1_000 } else { 10_000 }).await?;
    burst::let_in(report, &hall, &tickets).await?;
    tally.close().await;
    Ok(())
}
