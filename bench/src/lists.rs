//! `lists`: the 50 newest subjects of an object, and the 50 newest objects of a subject.

use crate::load::{self, Load, Measured};
use crate::options::{Options, System};
use crate::peers::postgres::{self, Postgres, connect};
use crate::peers::redis::{self, Redis};
use crate::peers::tally::{self, Tally};
use crate::peers::{SharedWorkload, lock, redis_dialogue, tally_dialogue};
use crate::progress::Progress;
use crate::rows::{Take, fresh_edges};
use anyhow::Result;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Instant;

const LIMIT: usize = 50;
/// The lists that are read: each holds more than a page, so every answer is a full one.
const LISTS: u32 = 500;
/// Likes of each listed subject. Objects have theirs from Zipf.
const LIKES_PER_SUBJECT: u32 = 100;
/// Listed subjects are outside the million, so that their likes are fresh.
const FIRST_LISTED_SUBJECT: u32 = 2_000_000;

/// Which way a list is read.
#[derive(Clone, Copy)]
enum Side {
    Object,
    Subject,
}

const SIDES: [(Side, &str, &str); 2] = [
    (Side::Object, "by_object", "50 newest subjects of an object"),
    (Side::Subject, "by_subject", "50 newest objects of a subject"),
];

/// Runs the benchmark.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let preload = options.preload(2_000_000);
    let data = format!(
        "1M subjects, 100k objects by Zipf 1.0, {preload} edges loaded first and {LIKES_PER_SUBJECT} for each of {LISTS} subjects, 64 connections"
    );
    let mut report = options.report("lists", "lists", &data);
    report.base_system = "Redis".into();
    let load = options.load(64);

    if options.wants(System::Redis) {
        let redis = Redis::start().await?;
        report.setups.push(format!("{}; a list is one ZREVRANGE WITHSCORES", redis::SETUP));
        let progress = Progress::counted("loading Redis", preload.into());
        redis.preload("like", edges(&redis.workload, preload), |edges| progress.add(edges)).await?;
        drop(progress);
        for (side, name, group) in SIDES {
            let id = format!("redis.{name}");
            let take = Take { id: &id, group, system: "Redis", how: "ZREVRANGE" };
            take.measure(&mut report, || redis.memory_bytes(), redis_list(load, &redis, side)).await?;
        }
    }
    if options.wants(System::Postgres) {
        let postgres = Postgres::start().await?;
        report.setups.push(format!("{}; a list is one prepared index-only query", postgres::SETUP));
        let progress = Progress::counted("loading PostgreSQL", preload.into());
        postgres.preload(1, edges(&postgres.workload, preload), |edges| progress.add(edges)).await?;
        postgres.finish_preload().await?;
        drop(progress);
        let load = Load { connections: 16, ..load };
        for (side, name, group) in SIDES {
            let id = format!("postgres.{name}");
            let take = Take { id: &id, group, system: "PostgreSQL", how: "one query, 16 connections" };
            let list = postgres_list(load, postgres.address(), postgres.workload.clone(), side);
            take.measure(&mut report, || postgres.memory_bytes(), list).await?;
        }
    }
    if options.wants(System::Tally) {
        let tally = Tally::start(options).await?;
        report.setups.push(tally::SETUP.into());
        let progress = Progress::counted("loading Tally", preload.into());
        tally.preload("like", edges(&tally.workload, preload), |edges| progress.add(edges)).await?;
        drop(progress);
        for (side, name, group) in SIDES {
            let id = format!("tally.{name}");
            let take = Take { id: &id, group, system: "Tally", how: "HTTP" };
            take.measure(&mut report, || tally.memory_bytes(), tally_list(load, &tally, side)).await?;
        }
    }
    report.finish(&options.out_folder())
}

/// The usual edges, then the listed subjects' own.
fn edges(workload: &SharedWorkload, preload: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
    let listed = (0..LISTS * LIKES_PER_SUBJECT).map(|index| {
        let (subject, turn) = (index % LISTS, index / LISTS);
        (subject * LIKES_PER_SUBJECT + turn, FIRST_LISTED_SUBJECT + subject)
    });
    fresh_edges(workload, preload).chain(listed)
}

/// A list to read: the most popular objects, or the listed subjects.
fn pick(workload: &SharedWorkload, side: Side) -> u32 {
    let index = lock(workload).below(LISTS);
    match side {
        Side::Object => index,
        Side::Subject => FIRST_LISTED_SUBJECT + index,
    }
}

async fn redis_list(load: Load, redis: &Redis, side: Side) -> Result<Measured> {
    let (address, workload) = (redis.address, redis.workload.clone());
    load::run(load, async move |_, recorder| {
        let workload = workload.clone();
        let key = Box::new(move |key: &mut Vec<u8>| {
            let picked = pick(&workload, side);
            // Writing into memory cannot fail.
            let _ = match side {
                Side::Object => write!(key, "like:post:{picked}"),
                Side::Subject => write!(key, "like:u{picked}"),
            };
        });
        load::converse(address, redis_dialogue::Newest::new(LIMIT, key), recorder).await
    })
    .await
}

async fn tally_list(load: Load, tally: &Tally, side: Side) -> Result<Measured> {
    let (address, workload, head_tail) = (tally.address, tally.workload.clone(), tally.head_tail.clone());
    load::run(load, async move |_, recorder| {
        let workload = workload.clone();
        let path = Box::new(move |path: &mut Vec<u8>| {
            let picked = pick(&workload, side);
            let _ = match side {
                Side::Object => write!(path, "/v1/relations/like/post:{picked}/subjects?limit={LIMIT}"),
                Side::Subject => write!(path, "/v1/subjects/u{picked}/relations/like?limit={LIMIT}"),
            };
        });
        load::converse(address, tally_dialogue::Get { pick: path, head_tail: head_tail.clone() }, recorder).await
    })
    .await
}

async fn postgres_list(load: Load, address: SocketAddr, workload: SharedWorkload, side: Side) -> Result<Measured> {
    let sql = match side {
        Side::Object => {
            "SELECT subject, created_at::text FROM edge WHERE relation = 1 AND object = $1 ORDER BY created_at DESC, subject LIMIT 50"
        }
        Side::Subject => {
            "SELECT object, created_at::text FROM edge WHERE relation = 1 AND subject = $1 ORDER BY created_at DESC, object LIMIT 50"
        }
    };
    load::run(load, async move |_, recorder| {
        let client = connect(address).await?;
        let list = client.prepare(sql).await?;
        loop {
            let picked = i64::from(pick(&workload, side));
            let asked = Instant::now();
            client.query(&list, &[&picked]).await?;
            if !recorder.answered(asked, 1) {
                return Ok(());
            }
        }
    })
    .await
}
