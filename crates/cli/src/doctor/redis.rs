//! A store in Redis: does it answer, is it what the URL says, what does an answered write survive there.

use std::path::PathBuf;

use indicatif::HumanBytes;
use tally::redis::{Facts, Options, Redis};

use super::store::Depth;
use super::{Finding, Report, far};
use crate::failure::Failure;

const DAY_MS: i64 = 86_400_000;
/// Of the memory that it may use, in percent.
const MEMORY_FULL: u64 = 80;

/// Looks at a Redis, or at every master of a Cluster. Nothing in it is changed, and servers on it go on.
pub(super) async fn examine(
    url: &str,
    options: Options,
    config: Option<PathBuf>,
    depth: Depth,
    report: &mut Report,
) -> Result<(), Failure> {
    let engine = Redis::new(options);
    let nodes = match engine.facts().await {
        Ok(nodes) => nodes,
        Err(error) => {
            far::unreachable("Redis", &error, report);
            return Ok(());
        }
    };
    reach(&nodes, report);
    let advice = "write rediss:// in the URL, once Redis has a certificate";
    far::encryption(engine.is_encrypted(), engine.is_far(), advice, report);
    let each = nodes.iter().map(|facts| (facts.node.as_str(), node(facts, engine.options())));
    report.findings.extend(together(each.collect()));
    let is_right = nodes.iter().all(|facts| facts.lacks(engine.options()).is_none());
    let is_store = is_right && keys(&engine, report).await;
    if is_store {
        time(&engine, report).await;
    }
    if is_store && depth == Depth::Everything {
        far::every_row(url, config, report).await;
    }
    Ok(())
}

fn reach(nodes: &[Facts], report: &mut Report) {
    let slowest = nodes.iter().map(|facts| facts.round_trip).max().unwrap_or_default().as_secs_f64() * 1e3;
    report.ok(
        "reach",
        match nodes {
            [one] if one.node.is_empty() => format!("it answers in {slowest:.1} ms"),
            several => format!("{} masters answer, the slowest in {slowest:.1} ms", several.len()),
        },
    );
}

/// Everything about one node.
fn node(facts: &Facts, options: &Options) -> Report {
    let mut report = Report::default();
    version(facts, options, &mut report);
    eviction(facts, options, &mut report);
    durability(facts, options, &mut report);
    replicas(facts, options, &mut report);
    memory(facts, &mut report);
    far::clock("Redis'", facts.clock_ahead_ms, &mut report);
    report
}

/// What was found on every node is said once; what only some of them have, with their names.
fn together(nodes: Vec<(&str, Report)>) -> Vec<Finding> {
    let count = nodes.len();
    let mut all: Vec<(Finding, Vec<&str>)> = Vec::new();
    for (name, report) in nodes {
        for finding in report.findings {
            let is_same = |seen: &Finding| seen.check == finding.check && seen.found == finding.found;
            match all.iter_mut().find(|(seen, _)| is_same(seen)) {
                Some((_, names)) => names.push(name),
                None => {
                    let place = all.iter().rposition(|(seen, _)| seen.check == finding.check);
                    all.insert(place.map_or(all.len(), |place| place + 1), (finding, vec![name]));
                }
            }
        }
    }
    let named = |(mut finding, names): (Finding, Vec<&str>)| {
        if names.len() < count {
            finding.found = format!("{}: {}", names.join(", "), finding.found);
        }
        finding
    };
    all.into_iter().map(named).collect()
}

fn version(facts: &Facts, options: &Options, report: &mut Report) {
    let name = if facts.product == "valkey" { "Valkey" } else { "Redis" };
    // Eviction has a line of its own.
    let mut lenient = options.clone();
    lenient.may_vanish = true;
    match facts.lacks(&lenient) {
        Some(why) => report.fail("version", why, "do what it says, or give another URL"),
        None => {
            let kind = if facts.is_cluster { ", a master of a Cluster" } else { "" };
            report.ok("version", format!("{name} {}{kind}", facts.version));
        }
    }
}

fn eviction(facts: &Facts, options: &Options, report: &mut Report) {
    let policy = &facts.maxmemory_policy;
    let gone = match facts.evicted_keys {
        0 => String::new(),
        keys => format!("; {keys} keys were since it started"),
    };
    let advice = "set maxmemory-policy noeviction";
    match (facts.evicts(), options.may_vanish) {
        (false, _) => report.ok("eviction", "nothing is thrown away when memory is full (noeviction)"),
        (true, false) => {
            let found = format!("data is thrown away when memory is full (maxmemory-policy {policy}){gone}");
            report.fail("eviction", found, format!("{advice}, or add may_vanish=1 to the URL if likes may vanish"));
        }
        (true, true) => {
            let found = format!("likes may vanish when memory is full (maxmemory-policy {policy}, may_vanish){gone}");
            report.warn("eviction", found, format!("{advice} if they may not"));
        }
    }
}

/// What an answered write survives.
fn durability(facts: &Facts, options: &Options, report: &mut Report) {
    if let Some(why) = facts.disk_fails {
        return report.fail("durability", why, "see to its disk, and to Redis' log");
    }
    let copied = match options.wait_replicas {
        0 => String::new(),
        replicas => format!("; every answered write is in {replicas} of its replicas too"),
    };
    let advice = "set appendonly yes and appendfsync always";
    match (facts.aof, facts.appendfsync.as_str()) {
        (false, _) if facts.saves == Some(false) => {
            report.warn("durability", format!("nothing is on disk: a restart loses everything{copied}"), advice);
        }
        (false, _) => {
            let found = format!("no append-only file: a crash loses what came after the last snapshot{copied}");
            report.warn("durability", found, advice);
        }
        (true, "always") => report.ok("durability", "answered writes are on disk (appendfsync is always)"),
        (true, _) if options.wait_aof => report.ok("durability", "answered writes are on disk (wait_aof)"),
        (true, fsync) => {
            let how = if fsync.is_empty() { "may not be asked for" } else { fsync };
            let lost = if fsync == "no" { "what the kernel had not written" } else { "the last second" };
            let found = format!("appendfsync is {how}: a crash of the machine may lose {lost}{copied}");
            if options.wait_replicas > 0 {
                report.ok("durability", found);
            } else {
                report.warn("durability", found, "set appendfsync always, or wait_replicas or wait_aof in the URL");
            }
        }
    }
}

fn replicas(facts: &Facts, options: &Options, report: &mut Report) {
    let (there, asked) = (facts.replicas, options.wait_replicas);
    let found = format!("{there} in step, and an answer waits for {asked}");
    if there < asked {
        report.fail(
            "replicas",
            format!("{found}: writes are refused"),
            "start them, or lower wait_replicas in the URL",
        );
    } else if facts.is_cluster && there == 0 {
        report.warn("replicas", format!("{found}: if a master dies, so does the store"), "give every master a replica");
    } else if facts.is_cluster && asked == 0 {
        let found = format!("{found}: a failover may lose the last answered writes");
        report.warn("replicas", found, "add wait_replicas=1 to the URL, or take it into account");
    } else {
        report.ok("replicas", found);
    }
}

fn memory(facts: &Facts, report: &mut Report) {
    let used = facts.used_memory_bytes;
    let (limit, name) = match facts.maxmemory_bytes {
        0 => (facts.machine_memory_bytes, "the machine has; maxmemory is not set"),
        limit => (limit, "maxmemory allows"),
    };
    let found = format!("{} of {} that {name}", HumanBytes(used), HumanBytes(limit));
    if facts.maxmemory_bytes > 0 && used >= limit && !facts.evicts() {
        report.fail("memory", format!("{found}: writes are refused"), "raise maxmemory, or add nodes");
    } else if used.saturating_mul(100) >= limit.saturating_mul(MEMORY_FULL) {
        report.warn("memory", found, "raise maxmemory or add nodes before it is full: writes are refused then");
    } else {
        report.ok("memory", found);
    }
}

/// The store's time goes its own way where a clock was wrong; see `tally_redis::TimeApart`.
async fn time(engine: &Redis, report: &mut Report) {
    let found = match engine.time_apart().await {
        Ok(found) => found,
        Err(error) => return report.fail("time", error.to_string(), "look at Redis' log"),
    };
    let days = |ms: i64| ms as f64 / 86_400_000.0;
    let advice = "keep the clocks of all nodes right (NTP)";
    if found.stamp_ahead_ms > DAY_MS {
        let ahead = days(found.stamp_ahead_ms);
        let what =
            format!("the newest stamp in the store is {ahead:.1} days ahead: a clock was wrong when it was written");
        report.warn("time", what, "what was written then is listed as newer than it is, and jobs pass it over");
    } else if found.time_ahead_ms.abs() > far::CLOCK_APART_MS_MAX {
        let seconds = found.time_ahead_ms as f64 / 1_000.0;
        let what = format!("the store's time is {seconds:+.1} s from its node's clock, and is brought there slowly");
        report.warn("time", what, advice);
    } else {
        report.ok("time", "the store's time is that of its node's clock");
    }
}

/// What is under the prefix. Says whether it is a store that this release can open.
async fn keys(engine: &Redis, report: &mut Report) -> bool {
    let prefix = &engine.options().prefix;
    match engine.format().await {
        Ok(Some(format)) if format == Redis::FORMAT => {
            report.ok("keys", format!("a store of format {format} is under `{prefix}:`"));
            return true;
        }
        Ok(Some(format)) => {
            let found = format!("under `{prefix}:` is format {format}; this release knows {}", Redis::FORMAT);
            report.fail("keys", found, "use a newer release of Tally");
        }
        Ok(None) => report.ok("keys", format!("no store is under `{prefix}:` yet; the first server makes it")),
        Err(error) => report.fail("keys", error.to_string(), "look at Redis' log"),
    }
    false
}
