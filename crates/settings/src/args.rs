//! The flags that override settings.

use std::path::PathBuf;

use clap::Args;

/// Flags of every command that runs or inspects a server. A flag wins over the environment, which
/// wins over the file, which wins over the defaults.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Settings file [env: TALLY_CONFIG] [default: tally.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on [env: TALLY_LISTEN] [default: 127.0.0.1:7700]
    #[arg(long, value_name = "IP:PORT")]
    pub listen: Option<String>,
    /// Where the data lives [env: TALLY_STORE] [default: embedded:./tally-data]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// When an answered write is on disk: "always", or a duration [env: TALLY_SYNC] [default: always]
    #[arg(long, value_name = "WHEN")]
    pub sync: Option<String>,
    /// Certificate chain for HTTPS, PEM [env: TALLY_TLS_CERT]
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<String>,
    /// Private key for HTTPS, PEM [env: TALLY_TLS_KEY]
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<String>,
    /// "text" or "json" [env: TALLY_LOG_FORMAT] [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// "error", "warn", "info", "debug" or "trace" [env: TALLY_LOG_LEVEL] [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Turn authentication off, to try things out; on loopback only
    #[arg(long)]
    pub dev: bool,
}

impl ServeArgs {
    /// What a flag of the schema was given, if it was.
    pub(crate) fn value(&self, flag: &str) -> Option<String> {
        match flag {
            "--listen" => self.listen.clone(),
            "--store" => self.store.clone(),
            "--sync" => self.sync.clone(),
            "--tls-cert" => self.tls_cert.clone(),
            "--tls-key" => self.tls_key.clone(),
            "--log-format" => self.log_format.clone(),
            "--log-level" => self.log_level.clone(),
            "--dev" => self.dev.then(|| "true".to_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches, Parser};

    use super::*;
    use crate::schema::{Reach, SETTINGS};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        serve: ServeArgs,
    }

    #[test]
    fn every_flag_of_the_schema_reaches_its_setting() {
        for setting in SETTINGS {
            let (flag, words) = match setting.reach {
                Reach::Flag(flag) => (flag, vec!["tally", flag, "given"]),
                Reach::FlagOnly(flag) => (flag, vec!["tally", flag]),
                _ => continue,
            };
            let matches = Cli::command().try_get_matches_from(words).unwrap();
            let cli = Cli::from_arg_matches(&matches).unwrap();
            assert!(cli.serve.value(flag).is_some(), "{flag}");
        }
    }
}
