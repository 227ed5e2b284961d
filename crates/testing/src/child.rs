//! A server that this process started, and everything that can be done to it.

use crate::folder::Folder;
use crate::process;
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server; dropping it ends it.
pub struct Server {
    name: &'static str,
    child: Child,
    /// What asks it to end quickly and cleanly.
    stop_signal: Signal,
    log: PathBuf,
}

impl Server {
    /// Starts the program inside `folder`, with its output in a log file there.
    pub fn start(name: &'static str, command: &mut Command, folder: &Folder, stop_signal: Signal) -> Result<Self> {
        folder.end_with(stop_signal)?;
        let log = folder.path().join(format!("{name}.log"));
        // Appended to: a server that is started again keeps its history.
        let out = std::fs::File::options().create(true).append(true).open(&log)?;
        let child = command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            // Ctrl-C is for the test; the server is ended by us, in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("could not start {name} ({:?})", command.get_program()))?;
        Ok(Self { name, child, stop_signal, log })
    }

    /// Waits until `ready` succeeds. A server that ends instead is reported with its last words.
    pub async fn wait_until<T>(&mut self, limit: Duration, ready: impl AsyncFn() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        loop {
            let answer = ready().await;
            if let Some(answer) = self.judge(answer, begun, limit)? {
                return Ok(answer);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The same for a check that blocks.
    pub(crate) fn block_until<T>(&mut self, limit: Duration, ready: impl Fn() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        loop {
            if let Some(answer) = self.judge(ready(), begun, limit)? {
                return Ok(answer);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The answer if there is one, nothing if it is worth asking again.
    fn judge<T>(&mut self, answer: Result<T>, begun: Instant, limit: Duration) -> Result<Option<T>> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} ended by itself ({status}):\n{}", self.name, self.last_words());
        }
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if begun.elapsed() > limit => {
                let after = limit.as_secs();
                bail!("{} was not ready after {after} s: {error:#}\n{}", self.name, self.last_words());
            }
            Err(_) => Ok(None),
        }
    }

    /// The id of its first process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it and its children where they stand. Its sockets stay open, and nobody answers.
    pub fn pause(&self) -> Result<()> {
        process::pause(self.pid())
    }

    /// Lets it go on after [`Server::pause`].
    pub fn resume(&self) {
        process::resume(self.pid());
    }

    /// Ends it and its children as a power cut would, without a chance to tidy up.
    pub fn kill_hard(mut self) -> Result<()> {
        process::kill(self.pid())?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends it with another signal than the one it was started with, and waits until it is gone.
    pub fn stop_with(mut self, signal: Signal, limit: Duration) -> Result<()> {
        process::resume(self.pid());
        process::signal(self.pid(), signal);
        if !self.ended_within(limit) {
            let after = limit.as_secs();
            bail!("{} did not stop within {after} s:\n{}", self.name, self.last_words());
        }
        Ok(())
    }

    fn ended_within(&mut self, limit: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // Best effort from here on: there is nobody left to tell. One that is paused cannot end.
        process::resume(self.pid());
        process::signal(self.pid(), self.stop_signal);
        if !self.ended_within(Duration::from_secs(5)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// An address on loopback that nobody listens on.
///
/// Its port is below those that the kernel gives to outgoing connections. So nobody takes it while a server
/// is down for a moment, and a client that tries again and again never happens to connect to itself.
pub fn free_address() -> Result<SocketAddr> {
    Ok(listen()?.local_addr()?)
}

/// Starts something on a port that is free. Between looking for one and taking it, another process may have taken it: what
/// fails with these words is tried on another.
pub(crate) fn on_a_free_port(taken: &str, mut start: impl FnMut(SocketAddr) -> Result<()>) -> Result<()> {
    for _ in 0..5 {
        match start(free_address()?) {
            Err(error) if error.to_string().contains(taken) => {}
            ended => return ended,
        }
    }
    bail!("found no free port")
}

/// Listens on a free address, see [`free_address`].
pub(crate) fn listen() -> Result<TcpListener> {
    for attempt in 0..100 {
        let port = 20_000 + (RandomState::new().hash_one(attempt) % 12_000) as u16;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok(listener);
        }
    }
    bail!("found no free port on loopback")
}
