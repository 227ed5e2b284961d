//! Servers that the benchmark starts for itself: on free loopback ports, in temporary folders, gone
//! afterwards, also when the run ends early.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running server; dropping it ends it.
pub(crate) struct Server {
    name: &'static str,
    child: Child,
    /// What asks it to end quickly and cleanly.
    stop_signal: Signal,
    log: PathBuf,
}

impl Server {
    /// Starts the program with its output in a log file inside `folder`.
    pub(crate) fn start(name: &'static str, command: &mut Command, folder: &Path, stop_signal: Signal) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let out = std::fs::File::create(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("could not start {name} ({:?})", command.get_program()))?;
        Ok(Self { name, child, stop_signal, log })
    }

    /// Waits until `ready` succeeds. A server that ends instead is reported with its last words.
    pub(crate) async fn wait_until<T>(&mut self, limit: Duration, ready: impl AsyncFn() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended by itself ({status}):\n{}", self.name, self.last_words());
            }
            match ready().await {
                Ok(answer) => return Ok(answer),
                Err(error) if begun.elapsed() > limit => {
                    let after = limit.as_secs();
                    bail!("{} was not ready after {after} s: {error:#}\n{}", self.name, self.last_words());
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a power cut would, without a chance to tidy up.
    pub(crate) fn kill_hard(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
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
        // Best effort from here on: there is nobody left to tell.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, self.stop_signal);
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(5) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder on a real disk, removed with the value. `/tmp` may be memory, where a sync costs nothing.
pub(crate) fn temporary_folder(name: &str) -> Result<TempDir> {
    let base = Path::new("/var/tmp");
    let base = if base.is_dir() { base.to_path_buf() } else { std::env::temp_dir() };
    Ok(tempfile::Builder::new().prefix(&format!("tally-bench-{name}-")).tempdir_in(base)?)
}

/// An address on loopback that nobody listens on.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Bytes of memory that a process and its children hold; shared pages are shared out between them.
pub(crate) fn memory_bytes(pid: u32) -> u64 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    own_memory_bytes(pid) + children.map(memory_bytes).sum::<u64>()
}

fn own_memory_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Bytes on disk under a folder, as blocks taken, so that preallocated holes do not count.
pub(crate) fn disk_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => disk_bytes(&entry.path()),
            Ok(data) => data.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}
