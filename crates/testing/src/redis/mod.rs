//! Redis, started here: one server, or a cluster of them.

pub mod cluster;
mod options;
mod program;
mod resp;
mod valkey;

pub use cluster::{Cluster, ClusterOptions};
pub use options::Options;
pub use program::{REDIS_PROGRAM_VARIABLE, programs};
pub use valkey::valkey;

use crate::child::{Server, free_address, on_a_free_port};
use crate::folder::Folder;
use crate::process::{is_paused, memory_bytes};
use crate::proxy::Proxy;
use crate::shared::Shared;
use anyhow::{Context, Result, bail};
use resp::Connection;
use rustix::process::Signal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Names the instance that all tests share: a URL. `with-services` sets it.
pub const REDIS_VARIABLE: &str = "TALLY_TEST_REDIS";

/// A Redis of one's own, on 127.0.0.1 only; dropping it ends it and removes its files.
pub struct Redis {
    // Before the folder, so that it ends before its files are removed. Nothing while it is down.
    server: Option<Server>,
    folder: Folder,
    address: SocketAddr,
    /// Where the nodes of a cluster talk to each other.
    bus: Option<SocketAddr>,
    options: Options,
    program: PathBuf,
}

impl Redis {
    /// Starts one. Blocks until it answers.
    pub fn start(options: Options) -> Result<Self> {
        Self::start_as(options, false)
    }

    fn start_as(options: Options, is_node: bool) -> Result<Self> {
        let syncs = options.appendonly && options.appendfsync != "no";
        let folder = if syncs { Folder::new("redis") } else { Folder::in_memory("redis") }?;
        let program = options.program.clone().map_or_else(program::first, Ok)?;
        let mut redis = Self { server: None, folder, address: free_address()?, bus: None, options, program };
        on_a_free_port("already in use", |address| {
            redis.address = address;
            redis.bus = is_node.then(free_address).transpose()?;
            redis.start_again()
        })?;
        Ok(redis)
    }

    /// The URL of the instance that all tests share, each with a prefix of its own. It keeps nothing.
    ///
    /// It is the one that [`REDIS_VARIABLE`] names, or else one that is started for this process and ends
    /// with it. Others use it too, so there is no way to stop it.
    pub fn shared() -> Result<&'static str> {
        static SHARED: Shared<Redis> = Shared::new();
        SHARED.url(REDIS_VARIABLE, || {
            let redis = Self::start(Options::default())?;
            Ok((redis.url(), redis))
        })
    }

    /// `redis://127.0.0.1:PORT`, with the password if there is one.
    pub fn url(&self) -> String {
        format!("redis://{}{}", self.options.user(), self.address)
    }

    /// The same by way of a proxy in front of it.
    pub fn url_through(&self, proxy: &Proxy) -> String {
        format!("redis://{}{}", self.options.user(), proxy.address())
    }

    /// Where it listens. Stays the same when it is started again.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port of [`Redis::address`].
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The id of its process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Server::pid)
    }

    /// Bytes of memory that it holds.
    pub fn memory_bytes(&self) -> u64 {
        self.pid().map_or(0, memory_bytes)
    }

    /// One command, and its answer as text: an entry of a list a line, and nothing for nothing.
    pub fn ask(&self, words: &[&str]) -> Result<String> {
        Ok(self.connect()?.ask(words)?.text())
    }

    fn connect(&self) -> Result<Connection> {
        Connection::open(self.address, self.options.password.as_deref())
    }

    /// Ends it in order: everything that it keeps is written.
    pub fn stop(&mut self) -> Result<()> {
        self.server.take().context("Redis is not running")?.stop_with(Signal::TERM, Duration::from_secs(60))
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) -> Result<()> {
        self.server.take().context("Redis is not running")?.kill_hard()
    }

    /// Starts it after [`Redis::stop`] or [`Redis::kill`], with what it kept and on the same port.
    /// Blocks until all of that is loaded.
    pub fn start_again(&mut self) -> Result<()> {
        if self.server.is_some() {
            bail!("Redis is running");
        }
        std::fs::write(self.folder.path().join("redis.conf"), self.options.file(self.address, self.bus))?;
        let mut command = Command::new(&self.program);
        crate::clock::set(&mut command, self.options.clock_ahead_s)?;
        // If it is not ended otherwise, its data is thrown away.
        let mut server = Server::start("redis", command.arg("redis.conf"), &self.folder, Signal::KILL)?;
        let pid = server.pid();
        server.block_until(Duration::from_secs(60), || self.check_ready(pid))?;
        self.server = Some(server);
        Ok(())
    }

    /// Stops it in order and starts it again.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.start_again()
    }

    /// Freezes it. Connections stay open, new ones are taken by the kernel, nobody answers.
    pub fn pause(&self) -> Result<()> {
        self.server.as_ref().context("Redis is not running")?.pause()
    }

    /// Lets it go on after [`Redis::pause`].
    pub fn go_on(&self) -> Result<()> {
        self.server.as_ref().context("Redis is not running")?.resume();
        Ok(())
    }

    /// Whether it runs and is not paused.
    pub fn is_alive(&self) -> bool {
        self.pid().is_some_and(|pid| !is_paused(pid))
    }

    /// Whether it is this process that answers, and not another that has its port, and everything is loaded.
    fn check_ready(&self, pid: u32) -> Result<()> {
        let mut connection = self.connect()?;
        let about = connection.ask(&["INFO", "server"])?.text();
        if field(&about, "process_id") != Some(pid.to_string().as_str()) {
            bail!("another process has its port");
        }
        // While it loads this is an error.
        connection.ask(&["PING"])?;
        Ok(())
    }
}

/// A value in the answer to `INFO`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}
