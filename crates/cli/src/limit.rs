//! `tally limit`: take, show.

use clap::Subcommand;
use tally::core::command::Take;
use tally::core::query::{LimitAnswer, LimitQuery};
use tally::core::reply::TakeReply;
use tally::core::{KeyId, Name};

use super::failure::Failure;
use super::output::table;
use super::target::TargetArgs;

#[derive(Debug, Subcommand)]
pub(super) enum LimitCommand {
    /// Use some of a limit; exit code 1 when there is not enough left
    Take {
        /// A declared limit
        #[arg(value_parser = Name::new)]
        limit: Name,
        /// Whose, such as alice or 192.0.2.7
        #[arg(id = "counted", value_name = "KEY", value_parser = KeyId::new)]
        key: KeyId,
        /// How much
        #[arg(long, value_name = "N", default_value_t = 1)]
        cost: u64,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Show how a limit stands, without using it
    Show {
        /// A declared limit
        #[arg(value_parser = Name::new)]
        limit: Name,
        /// Whose, such as alice or 192.0.2.7
        #[arg(id = "counted", value_name = "KEY", value_parser = KeyId::new)]
        key: KeyId,
        #[command(flatten)]
        target: TargetArgs,
    },
}

const HEADER: [&str; 6] = ["limit", "key", "remaining", "of", "in ms", "all back in ms"];

pub(super) async fn run(command: LimitCommand) -> Result<(), Failure> {
    match command {
        LimitCommand::Take { limit, key, cost, target } => {
            let ask = Take { limit, key, cost };
            target.write(&ask).await?.show(|taken| {
                let TakeReply { limit, key, remaining, reset_ms, amount, window_ms, .. } = taken;
                table(HEADER, vec![row(&limit, &key, [remaining, amount, window_ms, reset_ms])])
            })
        }
        LimitCommand::Show { limit, key, target } => {
            let ask = LimitQuery { limit: limit.clone(), key: key.clone() };
            target.read(&ask).await?.show(|standing| {
                let LimitAnswer { remaining, reset_ms, amount, window_ms } = standing;
                table(HEADER, vec![row(&limit, &key, [remaining, amount, window_ms, reset_ms])])
            })
        }
    }
}

fn row(limit: &Name, key: &KeyId, [remaining, amount, window_ms, reset_ms]: [u64; 4]) -> [String; 6] {
    let numbers = [remaining, amount, window_ms, reset_ms].map(|number| number.to_string());
    let [remaining, amount, window_ms, reset_ms] = numbers;
    [limit.to_string(), key.to_string(), remaining, amount, window_ms, reset_ms]
}
