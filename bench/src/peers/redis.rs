//! Redis 7 as a peer: started here, loaded here, gone afterwards.

use super::redis_dialogue::{LIKE_SCRIPT, Likes, Once, Preload};
use super::{SEED, SharedWorkload};
use crate::load::{self, Dialogue, Line, Load, Measured};
use crate::workload::{Shape, Workload};
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tally_testing::{Folder, Server, disk_bytes, free_address, memory_bytes};

/// How sure Redis makes a write before it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Durability {
    /// Memory only.
    NoAof,
    /// A log, synced every second behind the answers.
    Everysec,
    /// A log, synced before the answer, as Tally does.
    Always,
}

impl Durability {
    /// Its part of a row's id.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::NoAof => "noaof",
            Self::Everysec => "everysec",
            Self::Always => "always",
        }
    }

    /// What a row calls the system.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoAof => "Redis, no AOF",
            Self::Everysec => "Redis, AOF everysec",
            Self::Always => "Redis, AOF always",
        }
    }
}

/// A running Redis.
pub(crate) struct Redis {
    // Before the folder, so that it ends before its files are removed.
    server: Server,
    folder: Folder,
    pub(crate) address: SocketAddr,
    pub(crate) workload: SharedWorkload,
    sha: String,
}

/// How this peer is set up, for the report.
pub(crate) const SETUP: &str = "Redis 7, one EVALSHA script a like (ZADD NX by object, ZADD by subject, ZCARD as the count), \
TCP_NODELAY, save \"\", no rewrite of the log during a row; the rest as it comes";

/// The same where no script of likes is run.
pub(crate) const SETUP_PLAIN: &str =
    "Redis 7, TCP_NODELAY, save \"\", no rewrite of the log during a row; the rest as it comes";

impl Redis {
    pub(crate) async fn start() -> Result<Self> {
        let folder = Folder::new("redis")?;
        let address = free_address()?;
        let mut command = Command::new("redis-server");
        command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no", "--auto-aof-rewrite-percentage", "0", "--daemonize", "no"]);
        command.arg("--dir").arg(folder.path());
        // Redis waits for nobody here: its data is thrown away.
        let mut server = Server::start("redis", &mut command, &folder, Signal::KILL)
            .context("is it installed? `cargo xtask test` installs it, or: apt-get install redis-server")?;
        server.wait_until(Duration::from_secs(10), async || ask(address, &["PING"]).await).await?;
        let answer = ask(address, &["SCRIPT", "LOAD", LIKE_SCRIPT]).await?;
        let sha = answer.lines().nth(1).context("SCRIPT LOAD gave no digest")?.to_owned();
        let workload = Arc::new(Mutex::new(Workload::new(SEED)));
        Ok(Self { server, folder, address, workload, sha })
    }

    pub(crate) async fn preload(
        &self,
        relation: &'static str,
        edges: impl Iterator<Item = (u32, u32)> + 'static,
        progress: impl FnMut(u64),
    ) -> Result<()> {
        load::to_the_end(self.address, Preload::new(relation, Box::new(edges)), progress).await
    }

    /// Holds a dialogue until it has nothing more to ask.
    pub(crate) async fn converse(&self, dialogue: impl Dialogue, progress: impl FnMut(u64)) -> Result<()> {
        load::to_the_end(self.address, dialogue, progress).await
    }

    /// Loads a script, and gives its digest.
    pub(crate) async fn load_script(&self, script: &str) -> Result<String> {
        let answer = ask(self.address, &["SCRIPT", "LOAD", script]).await?;
        Ok(answer.lines().nth(1).context("SCRIPT LOAD gave no digest")?.to_owned())
    }

    /// Changes the durability, and waits until Redis has written the log that it starts from.
    pub(crate) async fn set_durability(&self, durability: Durability) -> Result<()> {
        let (appendonly, appendfsync) = match durability {
            Durability::NoAof => ("no", "no"),
            Durability::Everysec => ("yes", "everysec"),
            Durability::Always => ("yes", "always"),
        };
        ask(self.address, &["CONFIG", "SET", "appendfsync", appendfsync, "appendonly", appendonly]).await?;
        for _ in 0..1200 {
            let info = ask(self.address, &["INFO", "persistence"]).await?;
            let busy = ["aof_rewrite_in_progress:1", "aof_rewrite_scheduled:1"].iter().any(|flag| info.contains(flag));
            if !busy {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("Redis did not finish writing its log in a minute")
    }

    /// Likes with so many in flight on each connection.
    pub(crate) async fn likes(&self, load: Load, shape: Shape, in_flight: usize) -> Result<Measured> {
        let (address, workload, sha) = (self.address, self.workload.clone(), self.sha.clone());
        load::run(load, async move |_, recorder| {
            load::converse(address, Likes::new(workload.clone(), shape, in_flight, &sha), recorder).await
        })
        .await
    }

    /// As a store of Tally's.
    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        memory_bytes(self.server.pid())
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        disk_bytes(self.folder.path())
    }
}

async fn ask(address: SocketAddr, words: &[&str]) -> Result<String> {
    let mut line = Line::open(address, Once::new(words)).await?;
    line.round().await?;
    Ok(String::from_utf8_lossy(&line.dialogue().answer).into_owned())
}
