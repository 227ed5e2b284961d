//! PostgreSQL, started here.

mod cluster;

pub use cluster::Template;

use crate::child::{Server, free_address, on_a_free_port};
use crate::folder::Folder;
use crate::process::memory_bytes;
use crate::proxy::Proxy;
use crate::shared::Shared;
use anyhow::{Context, Result, bail};
use cluster::Owner;
use rustix::process::Signal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Names the instance that all tests share: a URL. `with-services` sets it.
pub const POSTGRES_VARIABLE: &str = "TALLY_TEST_POSTGRES";
/// Names a [`Template`] that tests copy instead of making a cluster of their own. `with-services` sets it.
pub const POSTGRES_TEMPLATE_VARIABLE: &str = "TALLY_TEST_POSTGRES_TEMPLATE";

/// How a PostgreSQL is set up. The default is for tests: quick, and safe against everything but a power cut.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether it syncs its files, as it does by default in the field.
    pub fsync: bool,
    /// Settings by name, as in `postgresql.conf`; they win over ours.
    pub settings: Vec<(String, String)>,
    /// A [`Template`] to copy. Without one, [`POSTGRES_TEMPLATE_VARIABLE`] is asked. Unused with `fsync`.
    pub template: Option<PathBuf>,
    /// By how much its clock is wrong.
    pub clock_ahead_s: i64,
}

/// A PostgreSQL of one's own; dropping it ends it and removes its files.
///
/// On 127.0.0.1 only. The user `postgres` needs no password; the user `secret` does, and it is `secret`
/// (SCRAM). Both may do anything.
pub struct Postgres {
    // Before the folder, so that it ends before its files are removed. Nothing while it is down.
    server: Option<Server>,
    folder: Folder,
    address: SocketAddr,
    options: Options,
    programs: PathBuf,
    owner: Owner,
}

impl Postgres {
    /// Makes a cluster and starts it. Blocks until it takes connections.
    pub fn start(options: Options) -> Result<Self> {
        let folder = if options.fsync { Folder::new("postgres") } else { Folder::in_memory("postgres") }?;
        let programs = cluster::programs()?;
        let owner = Owner::find(folder.path())?;
        let template = options.template.clone();
        let template = template.or_else(|| std::env::var_os(POSTGRES_TEMPLATE_VARIABLE).map(PathBuf::from));
        match template.filter(|_| !options.fsync) {
            Some(template) => cluster::copy(&template, folder.path())?,
            None => cluster::make(&programs, &owner, folder.path(), options.fsync)?,
        }
        let mut postgres = Self { server: None, folder, address: free_address()?, options, programs, owner };
        on_a_free_port("could not bind", |address| {
            postgres.address = address;
            postgres.start_again()
        })?;
        Ok(postgres)
    }

    /// The URL of the instance that all tests share, each in a schema or database of its own.
    ///
    /// It is the one that [`POSTGRES_VARIABLE`] names, or else one that is started for this process and ends
    /// with it. Others use it too, so there is no way to stop it.
    pub fn shared() -> Result<&'static str> {
        static SHARED: Shared<Postgres> = Shared::new();
        SHARED.url(POSTGRES_VARIABLE, || {
            let postgres = Self::start(Options::default())?;
            Ok((postgres.url(), postgres))
        })
    }

    /// `postgres://postgres@127.0.0.1:PORT/postgres`
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.address)
    }

    /// The same by way of a proxy in front of it.
    pub fn url_through(&self, proxy: &Proxy) -> String {
        format!("postgres://postgres@{}/postgres", proxy.address())
    }

    /// The same for a user who needs a password.
    pub fn url_with_password(&self) -> String {
        format!("postgres://secret:secret@{}/postgres", self.address)
    }

    /// Where it listens. Stays the same when it is started again.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port of [`Postgres::address`].
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The id of its first process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Server::pid)
    }

    /// Bytes of memory that it holds, with all of its processes.
    pub fn memory_bytes(&self) -> u64 {
        self.pid().map_or(0, memory_bytes)
    }

    /// Ends it in order: connections are closed, everything is written.
    pub fn stop(&mut self) -> Result<()> {
        self.server.take().context("PostgreSQL is not running")?.stop_with(Signal::INT, Duration::from_secs(60))
    }

    /// Ends all of its processes as a power cut would. [`Postgres::start_again`] then recovers from the log.
    pub fn kill(&mut self) -> Result<()> {
        self.server.take().context("PostgreSQL is not running")?.kill_hard()
    }

    /// Starts it after [`Postgres::stop`] or [`Postgres::kill`], with the same data on the same port.
    pub fn start_again(&mut self) -> Result<()> {
        if self.server.is_some() {
            bail!("PostgreSQL is running");
        }
        let data = self.folder.path().join("data");
        let mut command = Command::new(self.programs.join("postgres"));
        command.arg("-D").arg(&data);
        for (name, value) in self.settings() {
            command.args(["-c", &format!("{name}={value}")]);
        }
        crate::clock::set_in(self.folder.path(), &mut command, self.options.clock_ahead_s)?;
        // SIGQUIT ends every backend at once; if it is not ended otherwise, its data is thrown away.
        let mut server = Server::start("postgres", self.owner.applied(&mut command), &self.folder, Signal::QUIT)?;
        let pid = server.pid();
        server.block_until(Duration::from_secs(60), || cluster::check_ready(&data, pid))?;
        self.server = Some(server);
        Ok(())
    }

    /// Sets its clock, from the next start on.
    pub fn set_clock(&mut self, ahead_s: i64) {
        self.options.clock_ahead_s = ahead_s;
    }

    /// Stops it in order and starts it again.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.start_again()
    }

    /// Freezes all of its processes. Connections stay open, new ones are taken by the kernel, nobody answers.
    pub fn pause(&self) -> Result<()> {
        self.server.as_ref().context("PostgreSQL is not running")?.pause()
    }

    /// Lets it go on after [`Postgres::pause`].
    pub fn resume(&self) -> Result<()> {
        self.server.as_ref().context("PostgreSQL is not running")?.resume();
        Ok(())
    }

    fn settings(&self) -> Vec<(&str, String)> {
        let mut settings = vec![
            ("port", self.port().to_string()),
            ("listen_addresses", "127.0.0.1".into()),
            ("unix_socket_directories", String::new()),
            ("max_connections", "300".into()),
        ];
        if !self.options.fsync {
            // Full pages stay on: a kill can tear a page in two.
            settings.push(("fsync", "off".into()));
            settings.push(("max_wal_size", "1GB".into()));
            // Shared memory in files of the folder, which go with it.
            settings.push(("dynamic_shared_memory_type", "mmap".into()));
        }
        // The last one wins.
        settings.extend(self.options.settings.iter().map(|(name, value)| (name.as_str(), value.clone())));
        settings
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.server.is_none() {
            cluster::release_memory(&self.folder.path().join("data"));
        }
    }
}
