//! `cargo xtask fuzz`: every target in `fuzz/`, briefly, on the kept corpus.
//!
//! Built here rather than by cargo-fuzz, which takes minutes to install and whose sanitizers need a nightly compiler: a
//! panic is found without them.

use crate::shell;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What tells libFuzzer which code an input has reached; as cargo-fuzz sets it.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Runs each target for the given time and stops at the first crash.
pub(crate) fn run(seconds: u32) -> Result<()> {
    let targets = targets(Path::new("fuzz/fuzz_targets"))?;
    if targets.is_empty() {
        bail!("fuzz targets are missing from fuzz/fuzz_targets");
    }
    // The same crates as everywhere else, and no second list to keep.
    std::fs::copy("Cargo.lock", "fuzz/Cargo.lock").context("copying Cargo.lock")?;
    let built = build()?;
    for target in targets {
        println!("==> fuzz {target} for {seconds} s");
        let kept = Path::new("fuzz/corpus").join(&target);
        std::fs::create_dir_all(&kept)?;
        // New inputs go into the first folder: a run must not change the kept corpus by itself.
        let found = shell::target_dir().join("fuzz-corpus").join(&target);
        std::fs::create_dir_all(&found)?;
        let crashes = shell::target_dir().join("fuzz-crashes");
        std::fs::create_dir_all(&crashes)?;
        shell::run(Command::new(built.join(&target)).args([found, kept]).args([
            format!("-max_total_time={seconds}"),
            format!("-artifact_prefix={}/{target}-", crashes.display()),
            "-verbosity=0".to_owned(),
            "-print_final_stats=1".to_owned(),
        ]))?;
    }
    Ok(())
}

/// They stand on `core` and the settings alone, so this takes a minute and not many.
fn build() -> Result<PathBuf> {
    let (folder, host) = (shell::target_dir().join("fuzz"), host()?);
    shell::run(
        shell::cargo()
            .args(["build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml", "--bins"])
            // Named, so that the flags are for the targets and not for what helps to build them.
            .args(["--target", &host, "--target-dir"])
            .arg(&folder)
            .env("RUSTFLAGS", COVERAGE),
    )?;
    Ok(folder.join(host).join("release"))
}

fn host() -> Result<String> {
    let about = shell::output(Command::new("rustc").arg("-vV"))?;
    let line = about.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not name its host")?;
    Ok(line.to_owned())
}

fn targets(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ext| ext == "rs")
            && let Some(stem) = path.file_stem()
        {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
