//! A store in PostgreSQL: does it answer, may we, is an answered write safe there, who else is on it.

use std::path::PathBuf;

use indicatif::HumanCount;
use tally::postgres::{Facts, Options, Postgres, SchemaFacts};

use super::store::Depth;
use super::{Report, far};
use crate::failure::Failure;

/// Looks at a database. Nothing in it is changed, and servers on it go on.
pub(super) async fn examine(
    url: &str,
    options: Options,
    config: Option<PathBuf>,
    depth: Depth,
    report: &mut Report,
) -> Result<(), Failure> {
    let (pool, schema) = (options.pool, options.schema.clone());
    let engine = Postgres::new(options)?;
    let facts = engine.facts().await;
    engine.close().await;
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => {
            far::unreachable("PostgreSQL", &error, report);
            return Ok(());
        }
    };
    let took = facts.round_trip.as_secs_f64() * 1e3;
    report.ok("reach", format!("it answers {} in {took:.1} ms", facts.role));
    match &facts.lacks {
        Some(lacks) => report.fail("version", lacks, "give the URL of another database"),
        None => report.ok("version", format!("PostgreSQL {}", facts.version)),
    }
    let advice = "set sslmode=require in the URL, once PostgreSQL has a certificate";
    far::encryption(facts.is_encrypted, facts.is_far, advice, report);
    tables(&facts, &schema, report);
    durability(&facts, report);
    far::clock("the database's", facts.clock_ahead_ms, report);
    connections(&facts, pool, report);
    waiting(&facts, report);
    let Some(found) = facts.schema.as_ref().filter(|found| found.version.is_some()) else { return Ok(()) };
    company(found, report);
    if depth == Depth::Everything && facts.lacks.is_none() {
        far::every_row(url, config, report).await;
    }
    Ok(())
}

/// The schema and its tables, and what the role may do there.
fn tables(facts: &Facts, schema: &str, report: &mut Report) {
    let known = Postgres::SCHEMA_VERSION;
    let role = &facts.role;
    let (version, may_create) = match &facts.schema {
        Some(found) => (found.version, found.may_create),
        None => (None, facts.may_create_schema),
    };
    if let Some(found) = facts.schema.as_ref().filter(|found| !(found.may_read && found.may_write)) {
        let cannot = if found.may_read { "write" } else { "read" };
        let advice = format!("GRANT USAGE ON SCHEMA {schema}, and SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN IT");
        return report.fail("permissions", format!("{role} may not {cannot} the tables of {schema}"), advice);
    }
    match version {
        Some(version) if version == known => {
            report.ok("schema", format!("{schema} is at version {version}"));
            let more = if may_create { "" } else { "; a release with new tables needs a role that may make them" };
            report.ok("permissions", format!("{role} may read and write{more}"));
        }
        Some(version) if version > known => {
            let found = format!("{schema} is at version {version}; this release knows up to {known}");
            report.fail("schema", found, "use a newer release of Tally");
        }
        _ if !may_create => {
            let advice = format!("GRANT CREATE ON the database to {role}, or start once with a role that may");
            report.fail("permissions", format!("{role} may not make the tables of {schema}"), advice);
        }
        Some(version) => {
            let found = format!("{schema} is at version {version}; this release brings it to {known}");
            report.warn("schema", found, "start a server of this release");
        }
        None => report.ok("schema", format!("{schema} is not there yet; the first server makes it")),
    }
}

/// What an answered write survives.
fn durability(facts: &Facts, report: &mut Report) {
    let commit = &facts.synchronous_commit;
    if !facts.fsync {
        let advice = "set fsync = on in postgresql.conf";
        report.warn("durability", "fsync is off: a power cut may lose answered writes, or everything", advice);
    } else if commit == "off" {
        let advice = "set synchronous_commit = on for this role or database";
        report.warn("durability", "synchronous_commit is off: a crash may lose answered writes", advice);
    } else {
        report.ok("durability", format!("answered writes are on disk (synchronous_commit is {commit})"));
    }
}

fn connections(facts: &Facts, pool: usize, report: &mut Report) {
    let (open, max) = (facts.connections_open, facts.connections_max);
    let found = format!("{open} of {max} are open; a server takes up to {}", pool + 1);
    if open + pool as i64 + 1 > max {
        let advice = "raise max_connections, or lower `pool` in the store's URL";
        report.warn("connections", format!("{found}, which may not fit"), advice);
    } else {
        report.ok("connections", found);
    }
}

fn waiting(facts: &Facts, report: &mut Report) {
    if facts.long_transactions > 0 {
        let (many, oldest) = (facts.long_transactions, facts.oldest_transaction_s);
        let found = format!("{many} open for more than a minute, the oldest for {oldest} s");
        let advice = "end them: they keep old rows from being vacuumed; pg_stat_activity shows whose they are";
        report.warn("transactions", found, advice);
    } else {
        report.ok("transactions", "none is open for long");
    }
    if facts.waiting_for_locks > 0 {
        let advice = "pg_blocking_pids() says who holds them";
        report.warn("locks", format!("{} wait for more than a second", facts.waiting_for_locks), advice);
    } else {
        report.ok("locks", "nobody waits for long");
    }
}

/// Who else is on the store, and which totals they meet on.
fn company(found: &SchemaFacts, report: &mut Report) {
    let own = env!("CARGO_PKG_VERSION");
    let names: Vec<String> = found.servers.iter().map(|(name, version)| format!("{name} ({version})")).collect();
    let text = if names.is_empty() { "none is up".to_owned() } else { names.join(", ") };
    if found.servers.iter().any(|(_, version)| version != own) {
        report.warn("servers", text, format!("use one release for all; this is {own}"));
    } else {
        report.ok("servers", text);
    }
    report.ok(
        "totals",
        match found.spread_totals {
            Some(0) => "none is spread over several rows".to_owned(),
            Some(many) => format!("{} hot ones are spread over several rows", HumanCount(many.unsigned_abs())),
            None => "there are too many to look which are spread".to_owned(),
        },
    );
}
