//! `tally attend`: mark, day, days, count.

use clap::Subcommand;
use tally::core::command::Attend;
use tally::core::query::{DayQuery, DaysQuery, Matching, SubjectDaysQuery};
use tally::core::{Day, Name, SubjectId};

use super::failure::Failure;
use super::output::{table, yes};
use super::parse;
use super::target::TargetArgs;

#[derive(Debug, Subcommand)]
pub(super) enum AttendCommand {
    /// Say that a subject was there on a day
    Mark {
        /// A declared sheet, such as daily
        #[arg(value_parser = Name::new)]
        sheet: Name,
        /// Who, such as alice
        #[arg(value_parser = SubjectId::new)]
        subject: SubjectId,
        /// The day [default: today, where the sheet's days end]
        #[arg(long, value_parser = parse::day)]
        day: Option<Day>,
        /// Say that it was not there
        #[arg(long)]
        absent: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Count who was there on a day
    Day {
        /// A declared sheet, such as daily
        #[arg(value_parser = Name::new)]
        sheet: Name,
        /// The day [default: today]
        #[arg(value_parser = parse::day)]
        day: Option<Day>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Show on which days a subject was there, and how many in a row
    Days {
        /// A declared sheet, such as daily
        #[arg(value_parser = Name::new)]
        sheet: Name,
        /// Who, such as alice
        #[arg(value_parser = SubjectId::new)]
        subject: SubjectId,
        /// From this day on
        #[arg(long, value_name = "DAY", value_parser = parse::day)]
        from: Option<Day>,
        /// Up to this day
        #[arg(long, value_name = "DAY", value_parser = parse::day)]
        to: Option<Day>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Count who was there on any of several days, or with --all on all of them
    Count {
        /// A declared sheet, such as daily
        #[arg(value_parser = Name::new)]
        sheet: Name,
        /// The days
        #[arg(required = true, value_name = "DAY", value_parser = parse::day)]
        days: Vec<Day>,
        /// Only who was there on all of them
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
}

pub(super) async fn run(command: AttendCommand) -> Result<(), Failure> {
    match command {
        AttendCommand::Mark { sheet, subject, day, absent, target } => {
            let ask = Attend { sheet, day, subject, present: !absent };
            target.write(&ask).await?.show(|mark| {
                let row = [
                    mark.sheet.to_string(),
                    mark.day.to_string(),
                    mark.subject.to_string(),
                    yes(mark.present),
                    yes(mark.changed),
                    mark.count.to_string(),
                    mark.streak.to_string(),
                ];
                table(["sheet", "day", "subject", "present", "changed", "count", "streak"], vec![row])
            })
        }
        AttendCommand::Day { sheet, day, target } => {
            let ask = DayQuery { sheet: sheet.clone(), day };
            target.read(&ask).await?.show(|day| {
                table(["sheet", "day", "count"], vec![[sheet.to_string(), day.day.to_string(), day.count.to_string()]])
            })
        }
        AttendCommand::Days { sheet, subject, from, to, target } => {
            let ask = SubjectDaysQuery { sheet, subject, from, to };
            target.read(&ask).await?.show(|days| {
                let listed: Vec<String> = days.days.iter().map(ToString::to_string).collect();
                let row = [
                    days.count.to_string(),
                    days.current_streak.to_string(),
                    days.longest_streak.to_string(),
                    listed.join(" "),
                ];
                table(["count", "streak now", "longest", "days"], vec![row])
            })
        }
        AttendCommand::Count { sheet, days, all, target } => {
            let matching = if all { Matching::All } else { Matching::Any };
            let ask = DaysQuery { sheet, days, matching };
            target.read(&ask).await?.show(|found| {
                let each = found.days.iter().map(|day| [day.day.to_string(), day.count.to_string()]);
                let label = if all { "on all of them" } else { "on any of them" };
                let together = [label.to_owned(), found.count.to_string()];
                table(["day", "count"], each.chain([together]).collect())
            })
        }
    }
}
