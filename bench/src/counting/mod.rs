//! `counting`: counters, unique counts, attendance, boards and limits, each next to its Redis command.

mod asks;
mod check;
mod curve;
mod ranks;
mod sketch;

use crate::load::{self, Load, Measured};
use crate::options::{Options, System};
use crate::peers::redis::{self, Durability, Redis};
use crate::peers::tally::{self, Tally};
use crate::progress::Progress;
use crate::report::Report;
use crate::rows::Take;
use anyhow::Result;
use asks::{Ask, KINDS, Kind, OnRedis, OnTally};

/// Runs the benchmark.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let members = options.preload(1_000_000);
    let data = format!(
        "1M subjects, 100k keys by Zipf 1.0, a board of {members} members, one operation a request, 64 connections"
    );
    let mut report = options.report("counting", "operations", &data);
    let load = options.load(64);
    if options.wants(System::Redis) {
        redis_rows(&mut report, load, members).await?;
    }
    if options.wants(System::Tally) {
        tally_rows(&mut report, options, load, members).await?;
    }
    if options.wants(System::InProcess) {
        let curve = sketch::measure(&mut report, options.is_quick());
        check::ranks(&mut report, members.into()).await?;
        ranks::measure(&mut report, if options.is_quick() { members } else { 10_000_000 }).await?;
        let folder = options.out_folder();
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("uniques.svg"), curve::draw(&curve))?;
    }
    report.finish(&options.out_folder())
}

async fn redis_rows(report: &mut Report, load: Load, members: u32) -> Result<()> {
    let redis = Redis::start().await?;
    report.setups.push(format!(
        "{}; INCR, PFADD, SETBIT, ZINCRBY, ZREVRANK, and for limits a script (ZREMRANGEBYSCORE, ZCARD, ZADD, PEXPIRE)",
        redis::SETUP_PLAIN
    ));
    let before = redis.memory_bytes();
    let progress = Progress::counted("loading a board into Redis", members.into());
    redis.converse(asks::RedisBoard::new(members), |added| progress.add(added)).await?;
    drop(progress);
    let per_million = (redis.memory_bytes() - before) as f64 / f64::from(members) * 1e6 / (1 << 20) as f64;
    report.figure("redis.board_memory", "memory per million members of a board, Redis", per_million, "MiB");
    let limit = redis.load_script(asks::LIMIT_SCRIPT).await?;
    for durability in [Durability::Always, Durability::NoAof] {
        redis.set_durability(durability).await?;
        for kind in KINDS {
            let id = format!("redis.{}.{}", durability.id(), kind.id());
            let take = Take { id: &id, group: kind.group(), system: durability.name(), how: kind.on_redis() };
            let ask = Ask { kind, workload: redis.workload.clone() };
            let measuring = measure_redis(load, &redis, ask, &limit);
            take.measure(report, || redis.memory_bytes(), measuring).await?;
        }
    }
    Ok(())
}

async fn measure_redis(load: Load, redis: &Redis, ask: Ask, limit: &str) -> Result<Measured> {
    let (address, limit) = (redis.address, limit.to_owned());
    load::run(load, async move |_, recorder| load::converse(address, OnRedis::new(ask.clone(), &limit), recorder).await)
        .await
}

async fn tally_rows(report: &mut Report, options: &Options, load: Load, members: u32) -> Result<()> {
    let tally = Tally::start(options).await?;
    report.setups.push(tally::SETUP.into());
    let before = tally.memory_bytes();
    let progress = Progress::counted("loading a board into Tally", members.into());
    tally.converse(asks::TallyBoard::new(members, tally.head_tail.clone()), |added| progress.add(added)).await?;
    drop(progress);
    let per_million = |bytes: u64| bytes as f64 / f64::from(members) * 1e6 / (1 << 20) as f64;
    let memory = per_million(tally.memory_bytes().saturating_sub(before));
    report.figure("tally.board_memory", "memory per million members of a board, Tally, store and all", memory, "MiB");
    let disk = per_million(tally.disk_bytes());
    report.figure("tally.board_disk", "disk per million members of a board, Tally", disk, "MiB");
    for kind in KINDS {
        let id = format!("tally.{}", kind.id());
        let take = Take { id: &id, group: kind.group(), system: "Tally", how: kind.on_tally() };
        let ask = Ask { kind, workload: tally.workload.clone() };
        let (address, head_tail) = (tally.address, tally.head_tail.clone());
        let measuring = load::run(load, async move |_, recorder| {
            load::converse(address, OnTally::new(ask.clone(), head_tail.clone()), recorder).await
        });
        take.measure(report, || tally.memory_bytes(), measuring).await?;
    }
    Ok(())
}

impl Kind {
    fn group(self) -> &'static str {
        match self {
            Self::Counter => "a counter, plus one",
            Self::Unique => "a unique count, one member",
            Self::Attendance => "attendance, one mark",
            Self::Board => "a board, plus one",
            Self::Rank => "a rank, read",
            Self::Limit => "a limit of 100 a minute, one use",
        }
    }
}
