//! `tally counter`: add, get.

use clap::Subcommand;
use tally::core::command::Add;
use tally::core::query::CounterQuery;
use tally::core::{KeyId, Name};

use super::failure::Failure;
use super::output::{cell, table};
use super::target::TargetArgs;

#[derive(Debug, Subcommand)]
pub(super) enum CounterCommand {
    /// Add to a counter
    Add {
        /// A declared counter, such as views
        #[arg(value_parser = Name::new)]
        counter: Name,
        /// What is counted, such as post:42
        #[arg(id = "counted", value_name = "KEY", value_parser = KeyId::new)]
        key: KeyId,
        /// How much; may be negative
        #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
        by: i64,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Show a counter's value
    Get {
        /// A declared counter, such as views
        #[arg(value_parser = Name::new)]
        counter: Name,
        /// What is counted, such as post:42
        #[arg(id = "counted", value_name = "KEY", value_parser = KeyId::new)]
        key: KeyId,
        #[command(flatten)]
        target: TargetArgs,
    },
}

pub(super) async fn run(command: CounterCommand) -> Result<(), Failure> {
    match command {
        CounterCommand::Add { counter, key, by, target } => {
            let ask = Add { counter, key, by };
            target.write(&ask).await?.show(|count| {
                let row =
                    [count.counter.to_string(), count.key.to_string(), count.value.to_string(), cell(count.last_at)];
                table(["counter", "key", "value", "last"], vec![row])
            })
        }
        CounterCommand::Get { counter, key, target } => {
            let ask = CounterQuery { counter: counter.clone(), key: key.clone() };
            target.read(&ask).await?.show(|count| {
                let row = [counter.to_string(), key.to_string(), count.value.to_string(), cell(count.last_at)];
                table(["counter", "key", "value", "last"], vec![row])
            })
        }
    }
}
