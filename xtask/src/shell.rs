//! Starting other programs, and saying which one failed.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The same cargo that runs this program, so that a pinned toolchain stays pinned.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from)
}

/// Prints the command, runs it, and fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("    $ {}", spelled(command));
    let status = command.status().with_context(|| format!("could not start {}", spelled(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", spelled(command));
    }
    Ok(())
}

/// Runs quietly and gives what it printed; its errors go through to the terminal.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let out =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("could not start {}", spelled(command)))?;
    if !out.status.success() {
        bail!("`{}` failed ({})", spelled(command), out.status);
    }
    String::from_utf8(out.stdout).with_context(|| format!("{} printed something that is not UTF-8", spelled(command)))
}

/// Whether a command runs and succeeds; for asking "is it there?".
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The first folder of PATH that holds the program.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn spelled(command: &Command) -> String {
    let mut words = vec![short_name(command.get_program())];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

fn short_name(program: &std::ffi::OsStr) -> String {
    let path = Path::new(program);
    path.file_name().unwrap_or(program).to_string_lossy().into_owned()
}
