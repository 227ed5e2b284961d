//! `with-services cargo nextest run …`: starts the servers that tests share, runs the command with their
//! addresses in its environment, and stops them. Ends as the command ended.

use anyhow::{Context, Result};
use std::process::{Command, ExitCode};
use tally_testing::postgres::{Options, POSTGRES_TEMPLATE_VARIABLE, POSTGRES_VARIABLE, Postgres, Template};

fn main() -> Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().context("say which command to run: with-services cargo nextest run")?;
    let template = Template::make()?;
    let postgres = Postgres::start(Options { template: Some(template.path().into()), ..Options::default() })?;
    let status = Command::new(&program)
        .args(words)
        .env(POSTGRES_VARIABLE, postgres.url())
        .env(POSTGRES_TEMPLATE_VARIABLE, template.path())
        .status()
        .with_context(|| format!("could not start {program:?}"))?;
    // A command that a signal ended has no code of its own.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
