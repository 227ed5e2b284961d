//! `with-services cargo nextest run …`: starts the servers that tests share, runs the command with their
//! addresses in its environment, and stops them. Ends as the command ended.

use anyhow::{Context, Result, anyhow};
use std::process::{Command, ExitCode};
use std::thread;
use tally_testing::postgres::{self, POSTGRES_TEMPLATE_VARIABLE, POSTGRES_VARIABLE, Template};
use tally_testing::redis::cluster::{REDIS_CLUSTER_VARIABLE, VALKEY_CLUSTER_VARIABLE};
use tally_testing::redis::{self, REDIS_VARIABLE};
use tally_testing::{Cluster, ClusterOptions, Postgres, Redis};

/// The servers, and what the PostgreSQL was copied from.
struct Services {
    postgres: Postgres,
    redis: Redis,
    cluster: Cluster,
    valkeys: Cluster,
    template: Template,
}

impl Services {
    /// All at once: most of the time they wait for themselves.
    fn start() -> Result<Self> {
        thread::scope(|scope| {
            let cluster = scope.spawn(|| Cluster::start(ClusterOptions::shared()));
            let valkeys = scope.spawn(|| Cluster::start(ClusterOptions::shared_apart()?));
            let redis = Redis::start(redis::Options::default())?;
            let template = Template::make()?;
            let options = postgres::Options { template: Some(template.path().into()), ..Default::default() };
            let postgres = Postgres::start(options)?;
            let valkeys = valkeys.join().map_err(|_| anyhow!("the Valkeys' thread panicked"))??;
            let cluster = cluster.join().map_err(|_| anyhow!("the cluster's thread panicked"))??;
            Ok(Self { postgres, redis, cluster, valkeys, template })
        })
    }
}

fn main() -> Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().context("say which command to run: with-services cargo nextest run")?;
    let services = Services::start()?;
    let status = Command::new(&program)
        .args(words)
        .env(POSTGRES_VARIABLE, services.postgres.url())
        .env(POSTGRES_TEMPLATE_VARIABLE, services.template.path())
        .env(REDIS_VARIABLE, services.redis.url())
        .env(REDIS_CLUSTER_VARIABLE, services.cluster.url())
        .env(VALKEY_CLUSTER_VARIABLE, services.valkeys.url())
        .status()
        .with_context(|| format!("could not start {program:?}"))?;
    // A command that a signal ended has no code of its own.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
