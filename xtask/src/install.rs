//! What the tests need on the machine, found or installed.
//!
//! A missing service fails the run with a word about what to install; nothing is ever skipped.

use crate::shell::{self, cargo, find_program, succeeds, target_dir};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// Pinned, because a new release brings new checks and a red run should mean a change of ours.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// Makes sure that a cargo subcommand is there. Building one takes minutes, once per machine.
pub(crate) fn cargo_tool(name: &str) -> Result<()> {
    if find_program(name).is_some() {
        println!("    {name}: found");
        return Ok(());
    }
    println!("    {name}: missing, installing it with cargo (this takes some minutes, once)");
    shell::run(cargo().args(["install", name, "--locked"]))
}

/// The same for one that has little to do, so that it need not be fast itself: it is built in half the time.
pub(crate) fn cargo_tool_quickly(name: &str) -> Result<()> {
    if find_program(name).is_some() {
        println!("    {name}: found");
        return Ok(());
    }
    println!("    {name}: missing, installing it with cargo (this takes some minutes, once)");
    shell::run(cargo().args(["install", name, "--locked", "--debug", "--quiet"]))
}

/// Makes sure that a Debian package's program is there.
pub(crate) fn debian_package(package: &str, find: fn() -> Option<PathBuf>) -> Result<()> {
    if let Some(program) = find() {
        println!("    {package}: {}", program.display());
        return Ok(());
    }
    println!("    {package}: missing, installing Debian's package");
    let Some(mut update) = apt_get() else {
        bail!(
            "{package} is not installed, and this user may not install it. Run `apt-get install {package}` as root, or put its programs on PATH"
        );
    };
    shell::run(update.args(["-qq", "update"]))?;
    if let Some(mut install) = apt_get() {
        shell::run(install.args(["-qq", "-y", "--no-install-recommends", "install", package]))?;
    }
    match find() {
        Some(_) => Ok(()),
        None => bail!("{package} was installed, but its programs were not found afterwards"),
    }
}

/// `redis-server`, or Valkey's under its own name.
pub(crate) fn redis_server() -> Option<PathBuf> {
    find_program("redis-server").or_else(|| find_program("valkey-server"))
}

/// The `nginx` program; Debian keeps it where only root's PATH leads.
pub(crate) fn nginx() -> Option<PathBuf> {
    find_program("nginx").or_else(|| Some(PathBuf::from("/usr/sbin/nginx")).filter(|file| file.is_file()))
}

/// The `postgres` program; Debian keeps it off PATH, in a folder per version.
pub(crate) fn postgres() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin/postgres"))
        .filter(|file| file.is_file())
        .collect();
    versions.sort();
    versions.pop().or_else(|| find_program("postgres"))
}

/// The schemathesis program, in a Python environment of its own under the target folder.
pub(crate) fn schemathesis() -> Result<PathBuf> {
    let home = target_dir().join("schemathesis");
    let program = home.join("bin/schemathesis");
    let stamp = home.join("tally-installed");
    if program.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|was| was == SCHEMATHESIS) {
        println!("    {SCHEMATHESIS}: found");
        return Ok(program);
    }
    println!("    {SCHEMATHESIS}: installing it with pip under {}", home.display());
    if !succeeds(Command::new("python3").args(["-c", "import venv, ensurepip"])) {
        bail!("schemathesis needs python3 with venv. On Debian: `apt-get install python3 python3-venv`");
    }
    shell::run(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
    shell::run(Command::new(home.join("bin/pip")).args(["install", "--quiet", SCHEMATHESIS]))?;
    std::fs::write(stamp, SCHEMATHESIS)?;
    Ok(program)
}

/// `apt-get` with the rights to install, if this user has them.
fn apt_get() -> Option<Command> {
    find_program("apt-get")?;
    let is_root = shell::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if is_root {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        return Some(command);
    }
    // `-n`: a prompt for a password would hang a run that nobody watches.
    if succeeds(Command::new("sudo").args(["-n", "true"])) {
        let mut command = Command::new("sudo");
        command.args(["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        return Some(command);
    }
    None
}
