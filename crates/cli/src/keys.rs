//! `tally key`: API keys.

use clap::{Args, Subcommand};
use tally::core::command::RevokeApiKey;
use tally::core::query::ApiKeysQuery;
use tally::core::rows::Role;
use tally_client::{KeyMade, KeyRevoked};

use super::failure::Failure;
use super::output::{cell, table};
use super::parse;
use super::target::{self, TargetArgs};

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key and show it, once
    #[command(after_help = "Example:\n  tally key create --role service --name backend")]
    Create(CreateArgs),
    /// List the keys, without their secrets
    List(ListArgs),
    /// End a key
    #[command(after_help = "Example:\n  tally key revoke abcd2345efgh")]
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// What it may do: read; service, which also writes for any subject; admin, which is everything
    #[arg(long, value_parser = parse::role())]
    role: Role,
    /// What people call it
    #[arg(long)]
    name: String,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, Args)]
pub(super) struct RevokeArgs {
    /// Its id, as `tally key list` shows it
    id: String,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(command: KeyCommand) -> Result<(), Failure> {
    match command {
        KeyCommand::Create(CreateArgs { role, name, target }) => {
            let made = target::with(&target, async |target| target.create_key(role, &name).await).await?;
            made.show(target.json, |made: KeyMade| {
                // Outside of the table, where a narrow terminal would break it in two.
                let shown = table(["id", "name", "role"], vec![[made.id, made.name, word(made.role)]]);
                format!("{shown}\nThe key, shown this once:\n\n  {}", made.key)
            })
        }
        KeyCommand::List(ListArgs { target }) => target.read(&ApiKeysQuery).await?.show(|keys| {
            let rows = keys
                .items
                .into_iter()
                .map(|key| [key.id, key.name, word(key.role), key.created_at.to_string(), cell(key.revoked_at)]);
            table(["id", "name", "role", "created", "revoked"], rows.collect())
        }),
        KeyCommand::Revoke(RevokeArgs { id, target }) => {
            let ask = RevokeApiKey { id };
            let revoked = target::with(&target, async |target| target.write(&ask).await).await?;
            let id = ask.id;
            revoked.show(target.json, |revoked: KeyRevoked| {
                if revoked.changed { format!("{id} is revoked.") } else { format!("{id} was revoked already.") }
            })
        }
    }
}

fn word(role: Role) -> String {
    format!("{role:?}").to_lowercase()
}
