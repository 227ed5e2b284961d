//! Tally over HTTP: the release binary on an embedded store, a sync before every answer.

use super::tally_dialogue::{Batches, Get, Likes};
use super::{SEED, SharedWorkload, lock};
use crate::http;
use crate::load::{self, Dialogue, Line, Load, Measured};
use crate::options::Options;
use crate::workload::{Shape, Workload};
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tally_testing::{Folder, Server, disk_bytes, free_address, memory_bytes};

/// How this system is set up, for the report.
pub(crate) const SETUP: &str = "Tally, `tally serve` on the embedded store, sync = \"always\": every answer after its fsync; API key auth on; defaults otherwise";

const KEY: &str = "bench-admin-key-0123456789abcdef";
/// What is declared beyond what is there anyway.
const SETTINGS: &str = "[limits.posting]\nrate = \"100/min\"\n";
/// As many commands as one call may carry.
const PRELOAD_BATCH: usize = 10_000;

/// A running Tally.
pub(crate) struct Tally {
    server: Server,
    folder: Folder,
    program: PathBuf,
    store: String,
    pub(crate) address: SocketAddr,
    pub(crate) workload: SharedWorkload,
    pub(crate) head_tail: Vec<u8>,
}

impl Tally {
    pub(crate) async fn start(options: &Options) -> Result<Self> {
        Self::start_on(options, None).await
    }

    /// Serves a store that is there already.
    pub(crate) async fn start_at(options: &Options, store: &str) -> Result<Self> {
        Self::start_on(options, Some(store)).await
    }

    async fn start_on(options: &Options, store: Option<&str>) -> Result<Self> {
        let program = match &options.tally {
            Some(program) => program.clone(),
            None => build()?,
        };
        let folder = Folder::new("tally")?;
        let address = free_address()?;
        let store = store.map_or_else(|| format!("embedded:{}", folder.path().join("store").display()), str::to_owned);
        let server = serve(&program, &folder, &store, address).await?;
        let workload = Arc::new(Mutex::new(Workload::new(SEED)));
        Ok(Self { server, folder, program, store, address, workload, head_tail: http::head_tail(KEY) })
    }

    /// Goes on with a workload whose edges are in the store already.
    pub(crate) fn with_workload(self, workload: &SharedWorkload) -> Self {
        Self { workload: workload.clone(), ..self }
    }

    /// Loads edges in the largest batches that the API takes.
    pub(crate) async fn preload(
        &self,
        relation: &'static str,
        edges: impl Iterator<Item = (u32, u32)> + 'static,
        progress: impl FnMut(u64),
    ) -> Result<()> {
        let edges = Rc::new(RefCell::new(edges));
        let progress = RefCell::new(progress);
        let load_some = async || {
            let edges = edges.clone();
            let next = Box::new(move || edges.borrow_mut().next());
            let mut line =
                Line::open(self.address, Batches::new(relation, PRELOAD_BATCH, &self.head_tail, next)).await?;
            loop {
                let round = line.round().await?;
                if round.operations == 0 {
                    return anyhow::Ok(());
                }
                (progress.borrow_mut())(round.operations);
            }
        };
        // Four at once: while one batch is synced, the next is decided.
        tokio::try_join!(load_some(), load_some(), load_some(), load_some())?;
        self.settle().await;
        Ok(())
    }

    /// Waits until the files stop changing, as PostgreSQL gets its VACUUM and CHECKPOINT after a load.
    async fn settle(&self) {
        let mut before = 0;
        for _ in 0..20 {
            let now = self.disk_bytes();
            if now == before {
                return;
            }
            before = now;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Holds a dialogue until it has nothing more to ask.
    pub(crate) async fn converse(&self, dialogue: impl Dialogue, progress: impl FnMut(u64)) -> Result<()> {
        load::to_the_end(self.address, dialogue, progress).await?;
        self.settle().await;
        Ok(())
    }

    /// One like per request.
    pub(crate) async fn likes(&self, load: Load, shape: Shape) -> Result<Measured> {
        let (address, workload, head_tail) = (self.address, self.workload.clone(), self.head_tail.clone());
        load::run(load, async move |_, recorder| {
            let likes = Likes { workload: workload.clone(), shape, head_tail: head_tail.clone() };
            load::converse(address, likes, recorder).await
        })
        .await
    }

    /// Many likes per request.
    pub(crate) async fn likes_batched(&self, load: Load, shape: Shape, size: usize) -> Result<Measured> {
        let (address, workload, head_tail) = (self.address, self.workload.clone(), self.head_tail.clone());
        load::run(load, async move |_, recorder| {
            let workload = workload.clone();
            let next = Box::new(move || {
                let edge = lock(&workload).next(shape);
                Some((edge.object, edge.subject))
            });
            load::converse(address, Batches::new("like", size, &head_tail, next), recorder).await
        })
        .await
    }

    /// Kills the server as a power cut would, starts it again, and gives the time until it was ready.
    pub(crate) async fn restart_after_kill(self) -> Result<(Self, Duration)> {
        self.server.kill_hard()?;
        let begun = Instant::now();
        let server = serve(&self.program, &self.folder, &self.store, self.address).await?;
        let taken = begun.elapsed();
        Ok((Self { server, ..self }, taken))
    }

    /// One GET, for checks between rows.
    pub(crate) async fn get(&self, path: &str) -> Result<()> {
        get(self.address, path, &self.head_tail).await
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        memory_bytes(self.server.pid())
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        disk_bytes(&self.folder.path().join("store"))
    }
}

async fn get(address: SocketAddr, path: &str, head_tail: &[u8]) -> Result<()> {
    let path = path.to_owned();
    let pick = Box::new(move |out: &mut Vec<u8>| out.extend_from_slice(path.as_bytes()));
    let mut line = Line::open(address, Get { pick, head_tail: head_tail.to_vec() }).await?;
    line.round().await?;
    Ok(())
}

async fn serve(program: &Path, folder: &Folder, store: &str, address: SocketAddr) -> Result<Server> {
    let mut command = Command::new(program);
    command
        .arg("serve")
        .env("TALLY_STORE", store)
        .env("TALLY_LISTEN", address.to_string())
        .env("TALLY_ADMIN_KEY", KEY)
        .env("TALLY_LOG_LEVEL", "warn");
    // It runs inside the folder, so that no settings file of the caller is picked up, but this one is.
    std::fs::write(folder.path().join("tally.toml"), SETTINGS)?;
    let mut server = Server::start("tally", &mut command, folder, Signal::TERM)?;
    let head_tail = http::head_tail(KEY);
    server.wait_until(Duration::from_secs(60), async || get(address, "/readyz", &head_tail).await).await?;
    Ok(server)
}

fn build() -> Result<PathBuf> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--quiet", "-p", "tally-cli"])
        .status()
        .context("could not start cargo to build the release binary")?;
    if !status.success() {
        bail!("building the release binary failed; `--only redis` and `--only postgres` run without it");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(std::fs::canonicalize(target.join("release/tally"))?)
}
