//! `cargo xtask test`: what must pass before a change lands, cheapest first.

use crate::shell::{self, cargo};
use crate::steps::Steps;
use crate::{contract, deny, fuzz, install, tidy};
use anyhow::Result;

/// How long each target is fuzzed: enough to run its corpus and a little beyond it.
const FUZZ_SECONDS: u32 = 5;

/// Runs every step, stops at the first that fails, and closes with one line.
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::new();
    steps.step("tools", install_everything)?;
    steps.step("format", || shell::run(cargo().args(["fmt", "--all", "--check"])))?;
    steps.step("clippy", || {
        shell::run(cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))
    })?;
    steps.step("tidy", tidy::run)?;
    steps.step("tests", tests)?;
    steps.step("doc tests", || shell::run(cargo().args(["test", "--workspace", "--doc", "--quiet"])))?;
    steps.step("contract", contract::run)?;
    steps.step("fuzz", || fuzz::run(FUZZ_SECONDS))?;
    steps.step("deny", deny::run)?;
    println!("\n{}", steps.summary());
    Ok(())
}

/// With the servers that tests share started once, and not by each test for itself.
fn tests() -> Result<()> {
    let with_services = ["run", "--quiet", "-p", "tally-testing", "--bin", "with-services", "--"];
    let nextest = cargo();
    shell::run(cargo().args(with_services).arg(nextest.get_program()).args(["nextest", "run", "--workspace"]))
}

fn install_everything() -> Result<()> {
    install::cargo_tool("cargo-nextest")?;
    install::debian_package("redis-server", install::redis_server)?;
    install::debian_package("postgresql", install::postgres)?;
    install::debian_package("nginx", install::nginx)?;
    install::schemathesis()?;
    Ok(())
}
