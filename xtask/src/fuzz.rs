//! `cargo xtask fuzz`: every target in `fuzz/`, briefly, on the kept corpus.

use crate::{install, shell};
use anyhow::{Result, bail};
use std::path::Path;

/// Runs each target for the given time and stops at the first crash.
pub(crate) fn run(seconds: u32) -> Result<()> {
    let targets = targets(Path::new("fuzz/fuzz_targets"))?;
    if targets.is_empty() {
        bail!("there are no fuzz targets: add one as fuzz/fuzz_targets/<name>.rs (see `cargo fuzz --help`)");
    }
    install::cargo_tool("cargo-fuzz")?;
    for target in targets {
        println!("==> fuzz {target} for {seconds} s");
        let kept = Path::new("fuzz/corpus").join(&target);
        std::fs::create_dir_all(&kept)?;
        // New inputs go into the first folder: a run must not change the kept corpus by itself.
        let found = shell::target_dir().join("fuzz-corpus").join(&target);
        std::fs::create_dir_all(&found)?;
        shell::run(
            shell::cargo()
                // `-s none`: the sanitizers need a nightly compiler; a panic is found without them.
                .args(["fuzz", "run", "-s", "none", "--target-dir"])
                .arg(shell::target_dir().join("fuzz"))
                .arg(&target)
                .args([found, kept])
                .args(["--", &format!("-max_total_time={seconds}")]),
        )?;
    }
    Ok(())
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
