//! `tally key`: API keys.

use clap::{Args, Subcommand};
use tally::core::query::ApiKeysAnswer;
use tally::core::rows::Role;
use tally_client::{KeyMade, KeyRevoked};

use super::failure::Failure;
use super::output::{cell, table};
use super::parse;
use super::target::{self, Ask, TargetArgs};

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
    let (ask, target) = match command {
        KeyCommand::Create(args) => (Ask::CreateKey { role: args.role, name: args.name }, args.target),
        KeyCommand::List(args) => (Ask::Keys, args.target),
        KeyCommand::Revoke(args) => (Ask::RevokeKey { id: args.id }, args.target),
    };
    let answer = target::with(&target, async |target| target.ask(&ask).await).await?;
    match &ask {
        Ask::CreateKey { .. } => answer.show(target.json, |made: KeyMade| {
            // Outside of the table, where a narrow terminal would break it in two.
            let shown = table(["id", "name", "role"], vec![[made.id, made.name, word(made.role)]]);
            format!("{shown}\nThe key, shown this once:\n\n  {}", made.key)
        }),
        Ask::RevokeKey { id } => answer.show(target.json, |revoked: KeyRevoked| {
            if revoked.changed { format!("{id} is revoked.") } else { format!("{id} was revoked already.") }
        }),
        _ => answer.show(target.json, |keys: ApiKeysAnswer| {
            let rows = keys
                .items
                .into_iter()
                .map(|key| [key.id, key.name, word(key.role), key.created_at.to_string(), cell(key.revoked_at)]);
            table(["id", "name", "role", "created", "revoked"], rows.collect())
        }),
    }
}

fn word(role: Role) -> String {
    format!("{role:?}").to_lowercase()
}
