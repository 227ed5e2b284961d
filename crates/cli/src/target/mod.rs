//! Where a command does its work: on a running server, or straight on a store.

mod local;
mod remote;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tally::VerifyReport;
use tally::core::room::{Join, TicketReply};
use tally::core::rows::Role;
use tally::core::{Operation, Question};
use tally_client::{BackupMade, Request};

pub(super) use local::{Local, require_there};
pub(super) use remote::Remote;

use super::failure::Failure;
use super::output::{Answer, Json};

/// Where to work, and how to answer.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where")]
pub(super) struct TargetArgs {
    /// Ask this server [env: TALLY_URL] [default: http://127.0.0.1:7700]
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub(super) url: Option<String>,
    /// API key for the server; in the environment it does not show in the list of processes
    /// [env: TALLY_KEY, else TALLY_ADMIN_KEY]
    #[arg(long, value_name = "KEY", conflicts_with = "store")]
    pub(super) key: Option<String>,
    /// Trust this certificate: the server's own, or the authority's that signed it; a PEM file [env: TALLY_CA]
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub(super) ca: Option<PathBuf>,
    /// Work straight on this store, embedded:PATH, postgres://… or redis://…; only by this flag, never by
    /// TALLY_STORE
    #[arg(long, value_name = "URL")]
    pub(super) store: Option<String>,
    /// Settings file with what is declared, for --store [env: TALLY_CONFIG] [default: tally.toml, if it is there]
    #[arg(long, value_name = "FILE", requires = "store")]
    pub(super) config: Option<PathBuf>,
    /// Print the API's JSON instead of a table
    #[arg(long)]
    pub(super) json: bool,
}

impl TargetArgs {
    /// Asks for a change, and nothing else.
    pub(super) async fn write<O: Operation + Request>(&self, ask: &O) -> Result<Answer<O::Answer>, Failure> {
        Ok(Answer::new(with(self, async |target| target.write(ask).await).await?, self.json))
    }

    /// Asks a question, and nothing else.
    pub(super) async fn read<Q>(&self, ask: &Q) -> Result<Answer<<Q as Request>::Answer>, Failure>
    where
        Q: Question<Answer: Serialize> + Request,
    {
        Ok(Answer::new(with(self, async |target| target.read(ask).await).await?, self.json))
    }
}

/// Where to work. Commands are written against this, so that each exists once.
pub(super) enum Target {
    Remote(Box<Remote>),
    Local(Box<Local>),
}

impl Target {
    async fn open(args: &TargetArgs) -> Result<Self, Failure> {
        match &args.store {
            Some(store) => Ok(Self::Local(Box::new(Local::open(store, args.config.clone()).await?))),
            None => Ok(Self::Remote(Box::new(Remote::new(args)?))),
        }
    }

    /// Asks for a change, and answers with the API's JSON.
    pub(super) async fn write<O: Operation + Request>(&self, operation: &O) -> Result<Json, Failure> {
        match self {
            Self::Remote(remote) => remote.ask(operation).await,
            Self::Local(local) => local.write(operation.clone()).await,
        }
    }

    /// Asks a question, and answers with the API's JSON.
    pub(super) async fn read<Q>(&self, question: &Q) -> Result<Json, Failure>
    where
        Q: Question<Answer: Serialize> + Request,
    {
        match self {
            Self::Remote(remote) => remote.ask(question).await,
            Self::Local(local) => local.read(question).await,
        }
    }

    /// Takes a ticket of a room, and says whether it is a new one.
    pub(super) async fn join(&self, join: &Join) -> Result<(TicketReply, bool), Failure> {
        match self {
            Self::Remote(remote) => remote.join(join).await,
            Self::Local(local) => local.join(join).await,
        }
    }

    /// Makes an API key.
    pub(super) async fn create_key(&self, role: Role, name: &str) -> Result<Json, Failure> {
        match self {
            Self::Remote(remote) => remote.create_key(role, name).await,
            Self::Local(local) => local.create_key(role, name).await,
        }
    }

    /// Recounts everything. `progress` gets the rows read so far.
    pub(super) async fn verify(
        &self,
        repair: bool,
        progress: impl FnMut(u64) + Send + 'static,
    ) -> Result<VerifyReport, Failure> {
        match self {
            Self::Remote(remote) => remote.verify(repair, progress).await,
            Self::Local(local) => local.verify(repair, progress).await,
        }
    }

    /// Copies the store. `progress` gets the rows written so far, where that can be seen.
    pub(super) async fn backup(
        &self,
        to: Option<&str>,
        progress: impl FnMut(u64) + Send + 'static,
    ) -> Result<BackupMade, Failure> {
        match self {
            Self::Remote(remote) => remote.backup(to).await,
            Self::Local(local) => local.backup(to, progress).await,
        }
    }
}

/// Opens the target, does the work, and closes the target whatever came of it.
pub(super) async fn with<T>(
    args: &TargetArgs,
    work: impl AsyncFnOnce(&Target) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let target = Target::open(args).await?;
    let outcome = work(&target).await;
    if let Target::Local(local) = &target {
        local.close().await;
    }
    outcome
}
