//! `cargo xtask deny`: licences, bans, duplicates, sources and advisories of every crate that we build on.

use crate::install;
use crate::shell::{self, cargo, succeeds};
use anyhow::Result;

/// Checks all of it. Advisories come from a database on the network; where that cannot be reached the rest is checked, and
/// one line says so.
pub(crate) fn run() -> Result<()> {
    install::cargo_tool_quickly("cargo-deny")?;
    shell::run(cargo().args(["deny", "--log-level", "error", "--workspace", "check", "licenses", "bans", "sources"]))?;
    if !succeeds(cargo().args(["deny", "--workspace", "fetch", "db"])) {
        println!("    the advisory database cannot be reached from here: advisories were NOT checked");
        return Ok(());
    }
    shell::run(cargo().args(["deny", "--log-level", "error", "--workspace", "check", "--disable-fetch", "advisories"]))
}
