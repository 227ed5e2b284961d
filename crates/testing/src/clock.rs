//! A server whose clock is wrong: it is started with a few functions of ours in front of the C library's.

use crate::target;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCE: &str = include_str!("clock.c");

/// Sets the clock of a program that is about to be started.
pub(crate) fn set(command: &mut Command, ahead_s: i64) -> Result<()> {
    if ahead_s != 0 {
        preload(command, &library()?, ahead_s);
    }
    Ok(())
}

/// The same for a program of another user, who may not be able to read what we can: by a copy in its own folder.
pub(crate) fn set_in(folder: &Path, command: &mut Command, ahead_s: i64) -> Result<()> {
    if ahead_s != 0 {
        let copy = folder.join("clock.so");
        std::fs::copy(library()?, &copy)?;
        preload(command, &copy, ahead_s);
    }
    Ok(())
}

fn preload(command: &mut Command, library: &Path, ahead_s: i64) {
    command.env("LD_PRELOAD", library).env("TALLY_CLOCK_AHEAD_S", ahead_s.to_string());
}

/// The library, built once by the compiler that links Rust programs too.
fn library() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    built.clone().map_err(anyhow::Error::msg)
}

fn build() -> Result<PathBuf> {
    let folder = target::folder("clock")?;
    // Several processes may build it at once: each under its own name, and the last one stays.
    let (library, own) = (folder.join("clock.so"), folder.join(format!("{}.so", std::process::id())));
    let source = folder.join(format!("{}.c", std::process::id()));
    std::fs::write(&source, SOURCE)?;
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&own).arg(&source).output()?;
    if !built.status.success() {
        bail!("a clock that is wrong could not be built with cc: {}", String::from_utf8_lossy(&built.stderr));
    }
    std::fs::remove_file(source)?;
    std::fs::rename(own, &library)?;
    Ok(library)
}
