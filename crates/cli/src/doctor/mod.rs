//! `tally doctor`: looks, says what it found, and what to do about it.

mod far;
mod postgres;
mod redis;
mod rooms;
mod server;
mod store;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tally::Opening;
use tally_server::settings;
use tally_settings::ServeArgs;

use super::failure::Failure;
use super::output::{Json, say, table};
use super::target::TargetArgs;

pub(super) const AFTER_HELP: &str = "\
Examples:
  tally doctor                                       the settings and the store that `tally serve` would use here
  tally doctor --store embedded:/var/lib/tally --full    this folder, and read every row of it
  tally doctor --store postgres://tally@db/app       this database, and who is on it
  tally doctor --store redis://cache:6379            this Redis, and what an answered write survives there
  tally doctor --url https://tally.example.com       a running server

Exit code 1 when something fails; warnings alone are 0.";

/// Flags of the doctor.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Look at this store, embedded:PATH, postgres://… or redis://… [default: the store of the settings]
    #[arg(long, value_name = "URL", conflicts_with = "url")]
    store: Option<String>,
    /// Look at this server instead of a store
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// API key for the server [env: TALLY_KEY, else TALLY_ADMIN_KEY]
    #[arg(long, value_name = "KEY", requires = "url")]
    key: Option<String>,
    /// Trust this certificate of the server, or of the authority that signed it; a PEM file [env: TALLY_CA]
    #[arg(long, value_name = "FILE", requires = "url")]
    ca: Option<PathBuf>,
    /// Settings file [env: TALLY_CONFIG] [default: tally.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read everything: verify every checksum, recount every total
    #[arg(long)]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    Warn,
    Fail,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Finding {
    status: Status,
    check: &'static str,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// What was found so far.
#[derive(Debug, Default, Serialize)]
struct Report {
    findings: Vec<Finding>,
}

impl Report {
    fn ok(&mut self, check: &'static str, found: impl Into<String>) {
        self.findings.push(Finding { status: Status::Ok, check, found: found.into(), advice: None });
    }

    fn warn(&mut self, check: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        let advice = Some(advice.into());
        self.findings.push(Finding { status: Status::Warn, check, found: found.into(), advice });
    }

    fn fail(&mut self, check: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        let advice = Some(advice.into());
        self.findings.push(Finding { status: Status::Fail, check, found: found.into(), advice });
    }

    fn has_failed(&self) -> bool {
        self.findings.iter().any(|finding| finding.status == Status::Fail)
    }

    fn words(&self) -> String {
        let rows = self.findings.iter().map(|finding| {
            let status = format!("{:?}", finding.status).to_lowercase();
            [status, finding.check.to_owned(), finding.found.clone(), finding.advice.clone().unwrap_or_default()]
        });
        table(["", "check", "found", "what to do"], rows.collect())
    }
}

pub(super) async fn run(args: DoctorArgs) -> Result<(), Failure> {
    let mut report = Report::default();
    match &args.url {
        Some(url) => {
            let (url, key, ca) = (Some(url.clone()), args.key.clone(), args.ca.clone());
            let target = TargetArgs { url, key, ca, store: None, config: None, json: false };
            server::examine(&target, args.full, &mut report).await?;
        }
        None => {
            let (url, are_right) = settings(&args, &mut report);
            if let Some(url) = url {
                let depth = match (are_right, args.full) {
                    (false, _) => store::Depth::Outside,
                    (true, false) => store::Depth::Inside,
                    (true, true) => store::Depth::Everything,
                };
                match Opening::parse(&url) {
                    Ok(Opening::Postgres(options)) => {
                        postgres::examine(&url, *options, args.config.clone(), depth, &mut report).await?;
                    }
                    Ok(Opening::Redis(options)) => {
                        redis::examine(&url, *options, args.config.clone(), depth, &mut report).await?;
                    }
                    _ => store::examine(&url, args.config.clone(), depth, &mut report).await?,
                }
            }
        }
    }
    if args.json {
        Json::of(&report)?.show(true, |_: ()| String::new())?
    } else {
        say(&report.words())?
    }
    if report.has_failed() { Err(Failure::reported(1)) } else { Ok(()) }
}

/// Checks the settings, and says which store they mean and whether they are right.
fn settings(args: &DoctorArgs, report: &mut Report) -> (Option<String>, bool) {
    let given = ServeArgs { config: args.config.clone(), store: args.store.clone(), ..ServeArgs::default() };
    match settings::load(&given) {
        Ok(settings) => {
            for warning in &settings.warnings {
                report.warn("settings", warning, "see `tally config show`");
            }
            let file = settings.file.as_ref().map(|file| file.display().to_string());
            report.ok("settings", file.unwrap_or_else(|| "no file; environment and defaults".into()));
            (Some(settings.store), true)
        }
        Err(errors) => {
            for problem in errors.0 {
                let advice = problem.hint.clone().unwrap_or_else(|| "correct it".into());
                report.fail("settings", format!("{}: {}", problem.origin, problem.what), advice);
            }
            (args.store.clone(), false)
        }
    }
}
