//! `tally room`: create, set, show, list, watch, minutes, admit, open, hold, drain, delete, import-zset.

mod flags;
mod watch;
mod words;
mod zset;

use clap::{Args, Subcommand};
use tally::core::query::{MinutesQuery, RoomQuery, RoomsQuery};
use tally::core::room::read::RoomAnswer;
use tally::core::room::{Admit, DeleteRoom, Mode, PutRoom, RoomSettings};
use tally::core::{Name, Timestamp};

use super::failure::Failure;
use super::output::{Answer, table, yes};
use super::parse;
use super::target::{self, Target, TargetArgs};
use flags::Flags;

const CREATE_HELP: &str = "\
Examples:
  tally room create sale --rate 10
  tally room create sale --rate 50 --capacity 2000 --join any --return-host shop.example
  tally room create sale --rate 50 --opens-at 2030-11-29T12:00:00Z --shuffle

What is left out has its default, also where the room is there already; `tally room set` changes only what is said.";

#[derive(Debug, Subcommand)]
pub(super) enum RoomCommand {
    /// Make a room, or set up one that is there anew
    #[command(after_help = CREATE_HELP)]
    Create(Box<Setup>),
    /// Change some of how a room is set up
    Set(Box<Setup>),
    /// Show a room and how it is set up
    Show(One),
    /// List all rooms
    List(Where),
    /// Follow a room, once a second, until Ctrl-C
    Watch(watch::WatchArgs),
    /// Show how the minutes of a room were, oldest first
    Minutes {
        #[command(flatten)]
        one: One,
        /// From when on [default: an hour ago]
        #[arg(long, value_name = "TIME", value_parser = parse::time)]
        from: Option<Timestamp>,
        /// Until when [default: now]
        #[arg(long, value_name = "TIME", value_parser = parse::time)]
        to: Option<Timestamp>,
    },
    /// Let so many in by hand, beyond the rate and within the capacity
    Admit {
        /// The room
        #[arg(value_parser = Name::new)]
        room: Name,
        /// How many
        #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
        count: u32,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Let in by rate and capacity: mode auto
    Open(One),
    /// Let nobody in; whoever waits keeps waiting: mode hold
    Hold(One),
    /// Take no new joins, and let in who waits: mode drain
    Drain(One),
    /// Close a room for good and forget its tickets
    Delete {
        #[command(flatten)]
        one: One,
        /// Yes, also those who wait
        #[arg(long)]
        yes: bool,
    },
    /// Take over a queue that is a sorted set in Redis
    #[command(after_help = zset::AFTER_HELP)]
    ImportZset(Box<zset::ZsetArgs>),
}

/// A room, and how it is to be set up.
#[derive(Debug, Args)]
pub(super) struct Setup {
    /// What it is called, such as sale
    #[arg(value_parser = Name::new)]
    room: Name,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    target: TargetArgs,
}

/// A room.
#[derive(Debug, Args)]
pub(super) struct One {
    /// The room
    #[arg(value_parser = Name::new)]
    room: Name,
    #[command(flatten)]
    target: TargetArgs,
}

/// Where to look.
#[derive(Debug, Args)]
pub(super) struct Where {
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(command: RoomCommand) -> Result<(), Failure> {
    match command {
        RoomCommand::Create(setup) => {
            let Setup { room, flags, target } = *setup;
            put(&target, async |_| Ok((room, flags.over(RoomSettings::default())))).await
        }
        RoomCommand::Set(setup) => {
            let Setup { room, flags, target } = *setup;
            put(&target, async |target| {
                let settings = found(target, &room).await?.settings;
                Ok((room, flags.over(settings)))
            })
            .await
        }
        RoomCommand::Show(One { room, target }) => target.read(&RoomQuery { room }).await?.show(words::room),
        RoomCommand::List(Where { target }) => target.read(&RoomsQuery).await?.show(|rooms| words::rooms(rooms.items)),
        RoomCommand::Watch(args) => watch::run(args).await,
        RoomCommand::Minutes { one: One { room, target }, from, to } => {
            target.read(&MinutesQuery { room, from, to }).await?.show(|minutes| words::minutes(minutes.items))
        }
        RoomCommand::Admit { room, count, target } => target.write(&Admit { room, count }).await?.show(|let_in| {
            let numbers = [let_in.admitted.to_string(), let_in.inside.to_string(), let_in.capacity_left.to_string()];
            table(["let in", "inside now", "capacity left"], vec![numbers])
        }),
        RoomCommand::Open(one) => turn(one, Mode::Auto).await,
        RoomCommand::Hold(one) => turn(one, Mode::Hold).await,
        RoomCommand::Drain(one) => turn(one, Mode::Drain).await,
        RoomCommand::Delete { one, yes } => delete(one, yes).await,
        RoomCommand::ImportZset(args) => zset::run(*args).await,
    }
}

/// A room as it is now.
async fn found(target: &Target, room: &Name) -> Result<RoomAnswer, Failure> {
    target.read(&RoomQuery { room: room.clone() }).await?.read()
}

/// Sets a room up, and says how it is set up now.
async fn put(
    args: &TargetArgs,
    settings: impl AsyncFnOnce(&Target) -> Result<(Name, RoomSettings), Failure>,
) -> Result<(), Failure> {
    let answer = target::with(args, async |target| {
        let (room, settings) = settings(target).await?;
        // A server makes these itself; only a store that is written straight needs ours.
        let fresh = [secret()?, secret()?];
        target.write(&PutRoom { room, settings, fresh, declared: false }).await
    });
    Answer::<tally::core::room::RoomReply>::new(answer.await?, args.json).show(|put| {
        let row = [put.room.to_string(), yes(put.created), yes(put.changed)];
        format!("{}\n{}", table(["room", "created", "changed"], vec![row]), words::settings(&put.settings))
    })
}

/// Changes the mode, and nothing else.
async fn turn(one: One, mode: Mode) -> Result<(), Failure> {
    let One { room, target } = one;
    put(&target, async |target| {
        let settings = found(target, &room).await?.settings;
        Ok((room, RoomSettings { mode, ..settings }))
    })
    .await
}

async fn delete(one: One, yes: bool) -> Result<(), Failure> {
    let One { room, target } = one;
    let answer = target::with(&target, async |target| {
        if !yes {
            let RoomAnswer { waiting, ready, admitted, .. } = found(target, &room).await?;
            return Err(Failure::usage(format!(
                "{waiting} wait in `{room}` and {} are inside; with --yes their tickets are forgotten",
                ready + admitted
            )));
        }
        target.write(&DeleteRoom { room: room.clone() }).await
    });
    Answer::<tally_client::RoomDeleted>::new(answer.await?, target.json)
        .show(|_| format!("`{room}` is closed, and its tickets are being forgotten."))
}

/// 256 bits that nobody can guess, in hexadecimal.
fn secret() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Failure::new(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
