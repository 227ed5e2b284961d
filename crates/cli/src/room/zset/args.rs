//! The flags of `tally room import-zset`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tally::core::Name;
use tally_settings::duration;

use crate::target::TargetArgs;

pub(in crate::room) const AFTER_HELP: &str = "\
Examples:
  tally room create sale --mode hold --idle-ttl 24h
  tally room import-zset --url redis://old:6379 --key 'queue:{sale}' sale --dry-run
  tally room import-zset --url redis://old:6379 --key 'queue:{sale}' sale --mode shadow --for 10m
  tally room import-zset --url redis://old:6379 --key 'queue:{sale}' sale --mode only
  tally room open sale

The sorted set is only read, in pages, and may stay in use. Its members become subjects and keep their order: score, then
member. Who joins the room meanwhile stands behind those who were copied by then, so hold the room, or import first.
Each has the token zset:KEY, so doing it again, also after it was killed, gives nobody a second ticket. It can be joined by
its server with that token too, to learn what its ticket is called.

  once    copies who stands there now
  shadow  goes on: copies who comes, takes out who goes, and compares the positions of some on both sides
  only    copies who came since, and says that the switch is done
  off     copies nothing, and says how to go back

Exit codes: 0 done; 1 some members cannot be subjects, or it failed.";

/// How far an import goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// One pass
    #[default]
    Once,
    /// Follow the sorted set and compare
    Shadow,
    /// A last pass
    Only,
    /// Nothing; say how to go back
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct ZsetArgs {
    /// The Redis to read: redis://user:password@host:port/database, or rediss:// with TLS
    #[arg(long, value_name = "URL", env = "TALLY_IMPORT_URL", hide_env_values = true)]
    pub(super) url: String,
    /// The sorted set
    #[arg(long, value_name = "KEY")]
    pub(super) key: String,
    /// The room
    #[arg(value_parser = Name::new)]
    pub(super) room: Name,
    /// How far to go
    #[arg(long, value_enum, default_value_t)]
    pub(super) mode: Way,
    /// With --mode shadow: end after so long, such as 60s [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = length)]
    pub(super) lasting: Option<Duration>,
    /// Write nothing; say what would be done
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) into: IntoArgs,
}

/// Where the room is. As everywhere, except that --url and --key are the source's here.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where the room is")]
pub(super) struct IntoArgs {
    /// On this server [env: TALLY_URL] [default: http://127.0.0.1:7700]
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    server: Option<String>,
    /// API key for the server, with the role service or admin [env: TALLY_KEY, else TALLY_ADMIN_KEY]
    #[arg(long, value_name = "KEY", conflicts_with = "store")]
    server_key: Option<String>,
    /// Trust this certificate of the server, or of the authority that signed it; a PEM file [env: TALLY_CA]
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    ca: Option<PathBuf>,
    /// Straight in this store, embedded:PATH, postgres://… or redis://…
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Settings file, for --store [env: TALLY_CONFIG] [default: tally.toml, if it is there]
    #[arg(long, value_name = "FILE", requires = "store")]
    config: Option<PathBuf>,
    /// Print reports as JSON, one a line
    #[arg(long)]
    json: bool,
}

impl IntoArgs {
    /// The same as other commands have it.
    pub(super) fn target(&self) -> TargetArgs {
        TargetArgs {
            url: self.server.clone(),
            key: self.server_key.clone(),
            ca: self.ca.clone(),
            store: self.store.clone(),
            config: self.config.clone(),
            json: self.json,
        }
    }
}

fn length(text: &str) -> Result<Duration, String> {
    duration(text).ok_or_else(|| "a time is a number with ms, s, m, h or d, such as 60s".to_owned())
}
