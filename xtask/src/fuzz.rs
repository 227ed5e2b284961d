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
        // `-s none`: the sanitizers need a nightly compiler; a panic is found without them.
        shell::run(
            shell::cargo().args(["fuzz", "run", "-s", "none", &target, "--"]).arg(format!("-max_total_time={seconds}")),
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
