//! What we hold ourselves to, judged from the rows of a run.

use crate::report::{Report, Row};
use serde::{Deserialize, Serialize};

/// How a target is measured.
enum Measure {
    /// The best of our rows over the best of the peer's rows, at least.
    Ratio { ours: &'static [&'static str], peer: &'static [&'static str] },
    /// A figure, at most.
    AtMost { figure: &'static str },
}

struct Target {
    bench: &'static str,
    what: &'static str,
    measure: Measure,
    now: f64,
    going_to: f64,
    unit: &'static str,
}

/// A target with what was measured.
#[derive(Serialize, Deserialize, Clone)]
pub(crate) struct Judged {
    pub(crate) what: String,
    pub(crate) measured: String,
    pub(crate) now: String,
    pub(crate) going_to: String,
    pub(crate) ok: bool,
}

const SINGLE: &[&str] = &["tally.single.64", "tally.single.256"];
const HOT: &[&str] = &["tally.hot.64", "tally.hot.256"];

const ZIPF_ON_POSTGRES: &[&str] =
    &["tally.postgres.zipf.1", "tally.postgres.zipf.2", "tally.postgres.zipf.4", "tally.postgres.zipf.http.batch"];
const HOT_ON_POSTGRES: &[&str] =
    &["tally.postgres.hot.1", "tally.postgres.hot.2", "tally.postgres.hot.4", "tally.postgres.hot.http.batch"];

const ZIPF_ON_REDIS: &[&str] = &["tally.redis.always.zipf.1", "tally.redis.always.zipf.2", "tally.redis.always.zipf.4"];
const HOT_ON_REDIS: &[&str] = &["tally.redis.always.hot.1", "tally.redis.always.hot.2", "tally.redis.always.hot.4"];

const fn ratio(
    bench: &'static str,
    what: &'static str,
    ours: &'static [&'static str],
    peer: &'static [&'static str],
    now: f64,
    going_to: f64,
) -> Target {
    Target { bench, what, measure: Measure::Ratio { ours, peer }, now, going_to, unit: "x" }
}

const fn at_most(
    bench: &'static str,
    what: &'static str,
    figure: &'static str,
    now: f64,
    going_to: f64,
    unit: &'static str,
) -> Target {
    Target { bench, what, measure: Measure::AtMost { figure }, now, going_to, unit }
}

const TARGETS: &[Target] = &[
    ratio("likes", "one per request, to Redis AOF always", SINGLE, &["redis.always.single"], 1.4, 2.5),
    ratio("likes", "one per request, to Redis no AOF", SINGLE, &["redis.noaof.single"], 0.75, 1.3),
    ratio(
        "likes",
        "batches of 500, to Redis AOF always pipelined",
        &["tally.batch"],
        &["redis.always.pipelined"],
        1.2,
        5.0,
    ),
    ratio("likes", "batches of 500, to Redis no AOF pipelined", &["tally.batch"], &["redis.noaof.pipelined"], 0.8, 3.0),
    ratio(
        "likes",
        "one hot post, to PostgreSQL a transaction per like",
        HOT,
        &["postgres.hot.16", "postgres.hot.64"],
        20.0,
        100.0,
    ),
    ratio(
        "likes",
        "in process, to Redis AOF always pipelined",
        &["tally.process"],
        &["redis.always.pipelined"],
        1.3,
        6.0,
    ),
    ratio("likes", "repeated likes, to likes that change", &["tally.repeated"], &["tally.single.64"], 2.0, 2.0),
    at_most("likes", "bytes per like on disk", "tally.bytes_per_like", 100.0, 50.0, "bytes"),
    ratio(
        "postgres",
        "PostgreSQL engine by Zipf, to a transaction per like on 64 connections",
        ZIPF_ON_POSTGRES,
        &["postgres.single.64"],
        8.0,
        15.0,
    ),
    ratio(
        "postgres",
        "PostgreSQL engine by Zipf, to a transaction per like on 16 connections",
        ZIPF_ON_POSTGRES,
        &["postgres.single.16"],
        8.0,
        15.0,
    ),
    ratio(
        "postgres",
        "PostgreSQL engine, one hot post, to a transaction per like, the better of 16 and 64 connections",
        HOT_ON_POSTGRES,
        &["postgres.hot.16", "postgres.hot.64"],
        20.0,
        50.0,
    ),
    ratio(
        "redis",
        "Redis engine by Zipf, AOF always, to the script by hand pipelined",
        ZIPF_ON_REDIS,
        &["redis.always.pipelined"],
        0.8,
        2.0,
    ),
    ratio(
        "redis",
        "Redis engine, one hot post, AOF always, to the script by hand pipelined",
        HOT_ON_REDIS,
        &["redis.always.hot_pipelined"],
        0.8,
        2.0,
    ),
    ratio(
        "redis",
        "Redis engine over HTTP in batches of 500, AOF always, to the script by hand pipelined",
        &["tally.redis.always.zipf.http.batch"],
        &["redis.always.pipelined"],
        0.8,
        2.0,
    ),
    ratio(
        "redis",
        "Redis engine over HTTP, one like a request, AOF always, to the script by hand, one in flight",
        &["tally.redis.always.zipf.http.64", "tally.redis.always.zipf.http.256"],
        &["redis.always.single"],
        0.8,
        2.0,
    ),
    ratio("feed", "feed read, to Redis pipelined", &["tally.feed"], &["redis.feed"], 1.0, 3.0),
    ratio("feed", "feed read, to PostgreSQL", &["tally.feed"], &["postgres.feed"], 10.0, 30.0),
    ratio("lists", "50 newest of an object, to Redis", &["tally.by_object"], &["redis.by_object"], 1.0, 2.0),
    ratio("lists", "50 newest of a subject, to Redis", &["tally.by_subject"], &["redis.by_subject"], 1.0, 2.0),
    ratio("counting", "a counter, to INCR with AOF always", &["tally.counter"], &["redis.always.counter"], 1.0, 2.0),
    ratio(
        "counting",
        "a unique count, to PFADD with AOF always",
        &["tally.unique"],
        &["redis.always.unique"],
        1.0,
        2.0,
    ),
    ratio(
        "counting",
        "attendance, to SETBIT with AOF always",
        &["tally.attendance"],
        &["redis.always.attendance"],
        1.0,
        2.0,
    ),
    ratio("counting", "a board, to ZINCRBY with AOF always", &["tally.board"], &["redis.always.board"], 1.0, 2.0),
    ratio("counting", "a rank, to ZREVRANK", &["tally.rank"], &["redis.noaof.rank", "redis.always.rank"], 0.5, 1.0),
    ratio("counting", "a limit, to a script with AOF always", &["tally.limit"], &["redis.always.limit"], 1.0, 2.0),
    at_most("counting", "error of a unique count, root of the mean square", "unique.rms", 0.81, 0.81, "%"),
    at_most("counting", "error of a week's union", "unique.union", 1.2, 0.81, "%"),
    at_most("counting", "bytes of a sketch", "unique.bytes", 12_288.0, 6_144.0, "bytes"),
    at_most("counting", "a rank among ten million, embedded", "board.rank", 999.0, 10.0, "µs"),
    at_most("scale", "cost of one like per request, 10M edges to 100k", "scale.single", 1.5, 1.2, "x"),
    at_most("scale", "cost of a batched like, 10M edges to 100k", "scale.batch", 1.5, 1.2, "x"),
    at_most("scale", "cost of a feed read, 10M edges to 100k", "scale.feed", 1.5, 1.2, "x"),
    at_most("restart", "start after kill -9", "restart.seconds", 2.0, 0.5, "s"),
    at_most("restart", "bytes per like on disk", "restart.bytes_per_like", 100.0, 50.0, "bytes"),
];

/// Every target of this benchmark whose rows were measured.
pub(crate) fn judge(report: &Report) -> Vec<Judged> {
    TARGETS
        .iter()
        .filter(|target| target.bench == report.bench)
        .filter_map(|target| judge_one(target, report))
        .collect()
}

fn judge_one(target: &Target, report: &Report) -> Option<Judged> {
    let (measured, ok, sign) = match &target.measure {
        Measure::Ratio { ours, peer } => {
            let ratio = best(&report.rows, ours)? / best(&report.rows, peer)?;
            (ratio, ratio >= target.now, "≥")
        }
        Measure::AtMost { figure } => {
            let value = report.figures.iter().find(|found| found.id == *figure)?.value;
            (value, value <= target.now, "≤")
        }
    };
    Some(Judged {
        what: target.what.into(),
        measured: format!("{measured:.2} {}", target.unit),
        now: format!("{sign} {} {}", target.now, target.unit),
        going_to: format!("{sign} {} {}", target.going_to, target.unit),
        ok,
    })
}

fn best(rows: &[Row], ids: &[&str]) -> Option<f64> {
    rows.iter().filter(|row| ids.contains(&row.id.as_str())).map(|row| row.per_s).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::load::Measured;

    #[test]
    fn the_best_row_counts_and_a_missing_peer_is_left_out() {
        let mut report = Report::new("likes", "likes", String::new(), &[]);
        for (id, per_s) in [("tally.single.64", 10.0), ("tally.single.256", 15.0), ("redis.always.single", 10.0)] {
            let measured = Measured { per_s, latency: Histogram::new(), client_cores: 0.0 };
            report.rows.push(Row::new(id, "g", "s", "h", &measured, 0));
        }
        report.figure("tally.bytes_per_like", "bytes", 120.0, "bytes");
        let judged = judge(&report);
        assert_eq!(judged.len(), 2);
        assert!(judged[0].ok && judged[0].measured == "1.50 x");
        assert!(!judged[1].ok);
    }
}
