//! Processes by their ids: who belongs to whom, what state they are in, what they hold.

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// How long a signal may take to act. A process that waits for a disk reacts late.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of memory that a process and its children hold; shared pages are shared out between them.
pub fn memory_bytes(pid: u32) -> u64 {
    tree(pid).into_iter().map(own_memory_bytes).sum()
}

fn own_memory_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// A process and everything that it started, parents first.
fn tree(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    std::iter::once(pid).chain(children.flat_map(tree)).collect()
}

/// Stops a process and its children. Returns when none of them runs any more.
pub(crate) fn pause(pid: u32) -> Result<()> {
    // The parent first: once it stands still, it starts nobody that would be missed below.
    signal(pid, Signal::STOP);
    wait_for(pid, State::Paused)?;
    for child in tree(pid).into_iter().skip(1) {
        signal(child, Signal::STOP);
        wait_for(child, State::Paused)?;
    }
    Ok(())
}

/// Whether a process stands still.
pub(crate) fn is_paused(pid: u32) -> bool {
    state(pid) == State::Paused
}

/// Lets a process and its children go on.
pub(crate) fn resume(pid: u32) {
    tree(pid).into_iter().rev().for_each(|pid| signal(pid, Signal::CONT));
}

/// Kills the children of a process, then itself, with nobody able to act in between.
pub(crate) fn kill(pid: u32) -> Result<()> {
    pause(pid)?;
    let all = tree(pid);
    all.iter().rev().for_each(|pid| signal(*pid, Signal::KILL));
    all.into_iter().try_for_each(|pid| wait_for(pid, State::Gone))
}

/// A process that is gone already needs no signal, so errors mean nothing.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

#[derive(PartialEq)]
enum State {
    Running,
    Paused,
    /// Also: ended, and its parent did not ask yet how.
    Gone,
}

fn state(pid: u32) -> State {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // `pid (name) state …`, and a name may hold anything.
    match text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
        Some('T' | 't') => State::Paused,
        None | Some('Z' | 'X') => State::Gone,
        Some(_) => State::Running,
    }
}

fn wait_for(pid: u32, wanted: State) -> Result<()> {
    let begun = Instant::now();
    loop {
        let now = state(pid);
        if now == wanted || now == State::Gone {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("process {pid} did not react to a signal for {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
