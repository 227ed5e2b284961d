//! Tally as a library: no HTTP, no other process, the same sync before every answer.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Result;
use tally::core::command::{Batch, Call, Command, Relate};
use tally::core::limits::ATOMIC_COMMANDS_MAX;
use tally::core::{Name, ObjectId, SubjectId};
use tally::{Options, Tally};
use tally_testing::{Folder, memory_bytes};
use tokio::runtime::Runtime;

use super::{SEED, SharedWorkload, lock};
use crate::load::{self, Load, Measured};
use crate::workload::{Shape, Workload};

/// How this system is set up, for the report.
pub(crate) const SETUP: &str = "Tally in process: the `tally` crate on the embedded store, sync always, defaults otherwise; \
callers on one thread, each with one like in flight";

/// An open store, on a runtime of its own.
pub(crate) struct InProcess {
    /// One store, or several servers on one.
    servers: Vec<Tally>,
    _runtime: Running,
    _folder: Option<Folder>,
    pub(crate) workload: SharedWorkload,
}

impl InProcess {
    pub(crate) async fn open() -> Result<Self> {
        let folder = Folder::new("in-process")?;
        let url = format!("embedded:{}", folder.path().join("store").display());
        let opened = Self::open_at(&[url]).await?;
        Ok(Self { _folder: Some(folder), ..opened })
    }

    /// A server on each of these stores.
    pub(crate) async fn open_at(urls: &[String]) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let mut servers = Vec::new();
        for url in urls {
            let url = url.clone();
            servers.push(runtime.spawn(async move { Tally::open(&url, Options::default()).await }).await??);
        }
        let workload = Arc::new(Mutex::new(Workload::new(SEED)));
        Ok(Self { servers, _runtime: Running(Some(runtime)), _folder: None, workload })
    }

    /// Goes on with a workload whose edges are in the store already.
    pub(crate) fn with_workload(self, workload: &SharedWorkload) -> Self {
        Self { workload: workload.clone(), ..self }
    }

    pub(crate) async fn preload(
        &self,
        edges: impl Iterator<Item = (u32, u32)>,
        progress: impl FnMut(u64),
    ) -> Result<()> {
        let (edges, progress) = (RefCell::new(edges), RefCell::new(progress));
        let load_some = async || {
            loop {
                let some: Vec<_> = edges.borrow_mut().by_ref().take(ATOMIC_COMMANDS_MAX).collect();
                if some.is_empty() {
                    return anyhow::Ok(());
                }
                let commands = some.iter().map(|(object, subject)| relate(*object, *subject));
                let commands = commands.collect::<Result<Vec<_>>>()?;
                self.servers[0].apply(Call::system(Command::from(Batch { atomic: false, commands }))).await?.reply?;
                (progress.borrow_mut())(some.len() as u64);
            }
        };
        // Several at once: while some are synced, the next are decided.
        tokio::try_join!(load_some(), load_some(), load_some(), load_some(), load_some(), load_some())?;
        Ok(())
    }

    /// Each caller has one like in flight, on whichever server.
    pub(crate) async fn likes(&self, load: Load, shape: Shape) -> Result<Measured> {
        self.likes_by(load, shape, |caller, _| caller).await
    }

    /// The same, and a user's likes go to one server, as a load balancer with affinity sends them.
    pub(crate) async fn likes_by_user(&self, load: Load, shape: Shape) -> Result<Measured> {
        self.likes_by(load, shape, |_, subject| subject as usize).await
    }

    async fn likes_by(&self, load: Load, shape: Shape, route: fn(usize, u32) -> usize) -> Result<Measured> {
        let (servers, workload) = (self.servers.clone(), self.workload.clone());
        load::run(load, async move |caller, recorder| {
            loop {
                let edge = lock(&workload).next(shape);
                let tally = &servers[route(caller, edge.subject) % servers.len()];
                let command = relate(edge.object, edge.subject)?;
                let asked = Instant::now();
                tally.apply(Call::system(command)).await?.reply?;
                if !recorder.answered(asked, 1) {
                    return Ok(());
                }
            }
        })
        .await
    }

    /// The servers.
    pub(crate) fn servers(&self) -> &[Tally] {
        &self.servers
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        memory_bytes(std::process::id())
    }

    /// Closes the store, so that its files can go.
    pub(crate) async fn close(self) {
        for server in &self.servers {
            server.close().await;
        }
    }
}

/// A runtime that may be dropped inside another one.
struct Running(Option<Runtime>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // A runtime may not be waited for from inside another one.
            runtime.shutdown_background();
        }
    }
}

fn relate(object: u32, subject: u32) -> Result<Command> {
    Ok(Command::from(Relate {
        relation: Name::new("like")?,
        object: ObjectId::new(&format!("post:{object}"))?,
        subject: SubjectId::new(&format!("u{subject}"))?,
        kind: None,
        meta: None,
    }))
}
