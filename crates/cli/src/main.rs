//! The `tally` binary, a command line: one definition of the commands, each in a file of its own.
//!
//! Commands that touch data are written once, against [`target::Target`]: a running server, or a store.

mod attend;
mod backup;
mod board;
mod config;
mod copy;
mod counter;
mod doctor;
mod failure;
mod folder;
mod import;
mod keys;
mod limit;
mod logging;
mod output;
mod parse;
mod progress;
mod relations;
mod restore;
mod room;
mod salvage;
mod serve;
mod target;
mod unique;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tally_server::http::routes;
use tally_settings::ServeArgs;

use failure::Failure;

const AFTER_HELP: &str = "\
Examples:
  tally                                    run the server with its defaults
  tally like post:42 alice                 alice likes post:42
  tally count like post:42 --viewer alice  how many likes, and is alice's among them
  tally list bookmark --subject alice      what alice has bookmarked, newest first
  tally counter add views post:42          one more view
  tally board top points                   who leads
  tally room create sale --rate 10         a waiting room that lets ten in a second
  tally verify --repair                    recount everything and mend what drifted
  tally doctor                             what is wrong, and what to do about it

Commands that read or write data ask the server at --url. With --store embedded:PATH they open that
folder themselves, which no server may have open then; with --store postgres://… or redis://… they work
beside the servers of that database. --json prints the API's own JSON.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage or settings, 3 counts that do not add up.";

/// Interactions that always add up: likes, bookmarks, reactions, counters, attendance, boards, limits, waiting rooms
///
/// Without a command it runs the server.
#[derive(Debug, Parser)]
#[command(name = "tally", version, after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server; the same as no command at all
    #[command(after_help = serve::AFTER_HELP)]
    Serve(ServeArgs),
    /// Make sure that a subject likes an object
    Like(relations::LikeArgs),
    /// Make sure that a subject does not like an object
    Unlike(relations::LikeArgs),
    /// Make sure that an edge is there, or with --undo that it is not
    #[command(after_help = relations::RELATE_HELP)]
    Relate(relations::RelateArgs),
    /// Count an object's edges
    Count(relations::CountArgs),
    /// List who is related to an object, or what a subject is related to, newest first
    #[command(after_help = relations::LIST_HELP)]
    List(relations::ListArgs),
    /// Read the counts of many objects at once
    #[command(after_help = relations::READ_HELP)]
    Read(relations::ReadArgs),
    /// Counters: how many times?
    #[command(subcommand)]
    Counter(counter::CounterCommand),
    /// Unique counts: how many different ones?
    #[command(subcommand)]
    Unique(unique::UniqueCommand),
    /// Attendance: who was there on which day?
    #[command(subcommand)]
    Attend(attend::AttendCommand),
    /// Boards: who leads?
    #[command(subcommand)]
    Board(board::BoardCommand),
    /// Limits: may this happen now?
    #[command(subcommand)]
    Limit(limit::LimitCommand),
    /// Waiting rooms: whose turn is it?
    #[command(subcommand)]
    Room(room::RoomCommand),
    /// Recount everything and report what does not add up
    #[command(after_help = verify::AFTER_HELP)]
    Verify(verify::VerifyArgs),
    /// Copy the store while it is in use
    #[command(after_help = backup::AFTER_HELP)]
    Backup(backup::BackupArgs),
    /// Check a backup and put it in place as a new store
    #[command(after_help = restore::AFTER_HELP)]
    Restore(restore::RestoreArgs),
    /// Save what can still be read of a damaged folder as a new store
    #[command(after_help = salvage::AFTER_HELP)]
    Salvage(salvage::SalvageArgs),
    /// Move a whole store to another, such as from a folder to a database
    #[command(after_help = copy::AFTER_HELP)]
    Copy(copy::CopyArgs),
    /// Take over likes from elsewhere, such as from sets in Redis
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Make, list and revoke API keys
    #[command(subcommand)]
    Key(keys::KeyCommand),
    /// Look for problems and say what to do about them
    #[command(after_help = doctor::AFTER_HELP)]
    Doctor(doctor::DoctorArgs),
    /// Check and show settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print the HTTP contract as OpenAPI 3.1
    Openapi,
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Whatever is written here is people's data: for this user alone, also where a library creates the file.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    match dispatch(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.exit)
        }
    }
}

fn dispatch(cli: Cli) -> Result<(), Failure> {
    let command = match cli.command {
        None => return serve::run(&cli.serve),
        Some(Command::Serve(args)) => return serve::run(&args),
        Some(command) => command,
    };
    logging::for_commands();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Serve(args) => serve::run(&args),
            Command::Like(args) => relations::like(args, true).await,
            Command::Unlike(args) => relations::like(args, false).await,
            Command::Relate(args) => relations::relate(args).await,
            Command::Count(args) => relations::count(args).await,
            Command::List(args) => relations::list(args).await,
            Command::Read(args) => relations::read(args).await,
            Command::Counter(command) => counter::run(command).await,
            Command::Unique(command) => unique::run(command).await,
            Command::Attend(command) => attend::run(command).await,
            Command::Board(command) => board::run(command).await,
            Command::Limit(command) => limit::run(command).await,
            Command::Room(command) => room::run(command).await,
            Command::Verify(args) => verify::run(args).await,
            Command::Backup(args) => backup::run(args).await,
            Command::Restore(args) => restore::run(&args),
            Command::Salvage(args) => salvage::run(&args),
            Command::Copy(args) => copy::run(args).await,
            Command::Import(command) => import::run(command).await,
            Command::Key(command) => keys::run(command).await,
            Command::Doctor(args) => doctor::run(args).await,
            Command::Config(command) => config::run(&command),
            Command::Openapi => output::say(routes::openapi_json()),
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_commands_are_well_formed() {
        super::Cli::command().debug_assert();
    }
}
