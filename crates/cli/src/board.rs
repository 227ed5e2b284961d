//! `tally board`: add, set, leave, top, rank, seasons.

use clap::{Args, Subcommand};
use tally::core::command::{ChangeScore, ScoreChange};
use tally::core::limits::{AROUND_MAX, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};
use tally::core::query::{BoardItem, BoardQuery, SeasonsQuery, StandingQuery};
use tally::core::{Name, SubjectId, Timestamp};

use super::failure::Failure;
use super::output::{cell, table, yes};
use super::parse;
use super::target::TargetArgs;

#[derive(Debug, Subcommand)]
pub(super) enum BoardCommand {
    /// Add to a member's score
    Add {
        #[command(flatten)]
        who: Who,
        /// How much; may be negative
        #[arg(allow_negative_numbers = true)]
        by: i64,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Set a member's score
    Set {
        #[command(flatten)]
        who: Who,
        /// The score
        #[arg(allow_negative_numbers = true)]
        score: i64,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Take a member off a board
    Leave {
        #[command(flatten)]
        who: Who,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Show who leads
    Top {
        /// A declared board, such as points
        #[arg(value_parser = Name::new)]
        board: Name,
        /// Members on a page
        #[arg(long, value_name = "N", default_value_t = PAGE_ITEMS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=i64::from(PAGE_ITEMS_MAX)))]
        limit: u32,
        /// Begin at this place
        #[arg(long, value_name = "N", conflicts_with = "cursor", value_parser = clap::value_parser!(u64).range(1..))]
        rank: Option<u64>,
        /// Go on where a page ended
        #[arg(long)]
        cursor: Option<String>,
        /// When the season began [default: the one of now]
        #[arg(long, value_name = "TIME", value_parser = parse::time)]
        season: Option<Timestamp>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Show where a member stands
    Rank {
        #[command(flatten)]
        who: Who,
        /// Show this many neighbours on either side too
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=i64::from(AROUND_MAX)))]
        around: u32,
        /// When the season began [default: the one of now]
        #[arg(long, value_name = "TIME", value_parser = parse::time)]
        season: Option<Timestamp>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// List the seasons of a board, newest first
    Seasons {
        /// A declared board with seasons
        #[arg(value_parser = Name::new)]
        board: Name,
        #[command(flatten)]
        target: TargetArgs,
    },
}

/// A member of a board.
#[derive(Debug, Args)]
pub(super) struct Who {
    /// A declared board, such as points
    #[arg(value_parser = Name::new)]
    board: Name,
    /// Who, such as alice
    #[arg(value_parser = SubjectId::new)]
    member: SubjectId,
}

pub(super) async fn run(command: BoardCommand) -> Result<(), Failure> {
    match command {
        BoardCommand::Add { who, by, target } => change(who, ScoreChange::By(by), target).await,
        BoardCommand::Set { who, score, target } => change(who, ScoreChange::To(score), target).await,
        BoardCommand::Leave { who, target } => change(who, ScoreChange::Leave, target).await,
        BoardCommand::Top { board, limit, rank, cursor, season, target } => {
            let ask = BoardQuery { board, season, rank, limit, cursor };
            target.read(&ask).await?.show(|page| {
                let next = page.next_cursor.map(|cursor| format!("\nThere is more: --cursor {cursor}"));
                format!("{}{}", standings(page.items), next.unwrap_or_default())
            })
        }
        BoardCommand::Rank { who, around, season, target } => {
            let Who { board, member } = who;
            let ask = StandingQuery { board, season, member, around };
            target.read(&ask).await?.show(|standing| match (standing.around, standing.rank, standing.score) {
                (Some(items), ..) => standings(items),
                (None, Some(rank), Some(score)) => standings(vec![BoardItem { member: standing.member, score, rank }]),
                _ => format!("{} is not on the board.", standing.member),
            })
        }
        BoardCommand::Seasons { board, target } => {
            let ask = SeasonsQuery { board };
            target.read(&ask).await?.show(|seasons| {
                let rows = seasons.items.into_iter();
                let rows = rows.map(|item| [item.season.to_string(), cell(item.ends_at), yes(item.closed)]);
                table(["season", "ends", "closed"], rows.collect())
            })
        }
    }
}

async fn change(who: Who, change: ScoreChange, target: TargetArgs) -> Result<(), Failure> {
    let ask = ChangeScore { board: who.board, member: who.member, change };
    target.write(&ask).await?.show(|member| {
        let row = [
            member.board.to_string(),
            member.member.to_string(),
            cell(member.score),
            cell(member.rank),
            yes(member.changed),
        ];
        table(["board", "member", "score", "rank", "changed"], vec![row])
    })
}

fn standings(items: Vec<BoardItem>) -> String {
    let rows = items.into_iter().map(|item| [item.rank.to_string(), item.member.to_string(), item.score.to_string()]);
    table(["rank", "member", "score"], rows.collect())
}
