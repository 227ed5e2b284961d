//! `tally unique`: add, count.

use clap::Subcommand;
use tally::core::command::Observe;
use tally::core::query::UniqueQuery;
use tally::core::{KeyId, Name};

use super::failure::Failure;
use super::output::{table, yes};
use super::target::TargetArgs;

#[derive(Debug, Subcommand)]
pub(super) enum UniqueCommand {
    /// Note who was seen
    Add {
        /// A declared unique count, such as dau
        #[arg(value_parser = Name::new)]
        unique: Name,
        /// What is counted, such as 2026-11-16
        #[arg(id = "counted", value_name = "KEY", value_parser = KeyId::new)]
        key: KeyId,
        /// Who
        #[arg(required = true, value_name = "MEMBER")]
        members: Vec<String>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Count the different ones in a key, or in several together
    Count {
        /// A declared unique count, such as dau
        #[arg(value_parser = Name::new)]
        unique: Name,
        /// What is counted; several are counted together
        #[arg(required = true, value_name = "KEY", value_parser = KeyId::new)]
        keys: Vec<KeyId>,
        #[command(flatten)]
        target: TargetArgs,
    },
}

pub(super) async fn run(command: UniqueCommand) -> Result<(), Failure> {
    match command {
        UniqueCommand::Add { unique, key, members, target } => {
            let ask = Observe { unique, key, members };
            target.write(&ask).await?.show(|count| {
                let row =
                    [count.unique.to_string(), count.key.to_string(), yes(count.changed), count.estimate.to_string()];
                table(["unique", "key", "changed", "about"], vec![row])
            })
        }
        UniqueCommand::Count { unique, keys, target } => {
            let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
            let ask = UniqueQuery { unique: unique.clone(), keys };
            target.read(&ask).await?.show(|count| {
                let error = format!("±{:.2} %", count.error * 100.0);
                let row = [unique.to_string(), names.join(", "), count.estimate.to_string(), error];
                table(["unique", "keys", "about", "error"], vec![row])
            })
        }
    }
}
