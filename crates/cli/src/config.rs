//! `tally config`: check, show, defaults.

use std::path::PathBuf;

use clap::Subcommand;
use tally_server::settings;
use tally_settings::{ConfigErrors, ServeArgs, render_defaults, render_show};

use super::failure::Failure;
use super::output::say;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Explain every mistake in a settings file; exit code 2 when there is one
    ///
    /// With FILE, that file on its own. Without, what `tally serve` would use here: flags, environment and file.
    Check {
        /// A settings file
        file: Option<PathBuf>,
    },
    /// Show the settings in force, and where each comes from
    Show(ServeArgs),
    /// Print the default settings file, with what everything is for
    Defaults,
}

pub(super) fn run(command: &ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check { file: Some(file) } => {
            let problems = settings::check(file);
            if !problems.is_empty() {
                return Err(ConfigErrors(problems).into());
            }
            say(&format!("{} has no problems.", file.display()))
        }
        ConfigCommand::Check { file: None } => {
            let settings = settings::load(&ServeArgs::default())?;
            for warning in &settings.warnings {
                say(&format!("warning: {warning}"))?;
            }
            match &settings.file {
                Some(file) => say(&format!("{} and the environment have no problems.", file.display())),
                None => say("There is no settings file here, and the environment has no problems."),
            }
        }
        ConfigCommand::Show(args) => say(&render_show(&settings::load(args)?)),
        ConfigCommand::Defaults => say(&render_defaults()),
    }
}
