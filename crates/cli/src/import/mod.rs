//! `tally import`: what an application has elsewhere becomes edges.

mod connect;
mod counters;
mod edges;
mod finding;
mod pattern;
mod plan;
mod rehearse;
mod report;
mod source;
mod state;
mod witness;
mod work;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Subcommand};
use tally::core::Name;

use super::failure::Failure;
use super::progress;
use super::target::{self, Target, TargetArgs};
use edges::Edges;
use pattern::Pattern;
use plan::Plan;
use rehearse::Rehearsed;
use report::Report;
pub(super) use source::Source;
use state::{Header, State};
use work::Work;

const REDIS_HELP: &str = "\
Examples:
  tally import redis --url redis://old:6379 --sets 'comment:{}:liked_by' --dry-run
  tally import redis --url redis://old:6379 --sets 'comment:{}:liked_by' --subject 'user:{}'
  tally import redis --url redis://old:6379 --sets 'app:likes:{}' --object 'post:{}'

Redis is only read, step by step, and may stay in use; import once more when nobody writes to it any
longer. Sets and sorted sets are read, of one server or of every master of a cluster. An edge has the
time of its import; members of a sorted set are imported in the order of their scores.

Doing it again changes nothing. With the same command, an import that was stopped goes on where it was.

Old counters are compared with the sets, and every disagreement is reported: the sets win.
Exit codes: 0 done, also when old counters had drifted; 1 some members were refused, or it failed.";

#[derive(Debug, Subcommand)]
pub(super) enum ImportCommand {
    /// Sets of who likes what, such as comment:456:liked_by
    #[command(after_help = REDIS_HELP)]
    Redis(RedisArgs),
}

#[derive(Debug, Args)]
pub(super) struct RedisArgs {
    /// The Redis to read: redis://user:password@host:port/database, or rediss:// with TLS
    #[arg(long, value_name = "URL", env = "TALLY_IMPORT_URL", hide_env_values = true)]
    url: String,
    /// The keys of the sets; the hole {} is the object's id
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::parse)]
    sets: Pattern,
    /// What members are related by
    #[arg(long, default_value = "like", value_parser = Name::new)]
    relation: Name,
    /// Which kind, where the relation has one_of
    #[arg(long, value_parser = Name::new)]
    kind: Option<Name>,
    /// The object of a set [default: comment:{} for comment:{}:liked_by]
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::parse)]
    object: Option<Pattern>,
    /// How members are written; the hole {} is the subject, so 'user:{}' takes user: away
    #[arg(long, value_name = "PATTERN", default_value = "{}", value_parser = Pattern::parse)]
    subject: Pattern,
    /// The keys of the old counters [default: --sets with likes_count for liked_by]
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::parse)]
    counts: Option<Pattern>,
    /// Write nothing; say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Where the import remembers how far it is, until it is done [default: tally-import-….json, here]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Begin anew, whatever the state says
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    into: IntoArgs,
}

/// Where to import into. As everywhere, except that --url is the source here.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where to import into")]
struct IntoArgs {
    /// Import into this server [env: TALLY_URL] [default: http://127.0.0.1:7700]
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    server: Option<String>,
    /// API key for the server, with the role service or admin [env: TALLY_KEY, else TALLY_ADMIN_KEY]
    #[arg(long, value_name = "KEY", conflicts_with = "store")]
    key: Option<String>,
    /// Trust this certificate of the server, or of the authority that signed it; a PEM file [env: TALLY_CA]
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    ca: Option<PathBuf>,
    /// Import straight into this store, embedded:PATH or postgres://…
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Settings file with the relations, for --store [env: TALLY_CONFIG] [default: tally.toml, if it is there]
    #[arg(long, value_name = "FILE", requires = "store")]
    config: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(command: ImportCommand) -> Result<(), Failure> {
    let ImportCommand::Redis(args) = command;
    let into = TargetArgs {
        url: args.into.server.clone(),
        key: args.into.key.clone(),
        ca: args.into.ca.clone(),
        store: args.into.store.clone(),
        config: args.into.config.clone(),
        json: args.into.json,
    };
    let imported = target::with(&into, async |target| redis(args, target).await).await;
    // Other commands name a server with --url.
    imported.map_err(|failure| match failure.text().contains("with --url") {
        true => Failure::new(failure.text().replace("with --url", "with --server")).exiting(failure.exit),
        false => failure,
    })
}

async fn redis(args: RedisArgs, target: &Target) -> Result<(), Failure> {
    let started = Instant::now();
    let object = args.object.or_else(|| args.sets.object()).ok_or_else(|| {
        Failure::usage(format!("say what the objects of {} are, such as --object 'post:{{}}'", args.sets))
    })?;
    let counts = args.counts.or_else(|| args.sets.counts());
    let plan = Plan { sets: args.sets, object, subject: args.subject, counts, dry_run: args.dry_run };
    let source = Source::open(&args.url).await?;
    let edges = Edges::new(target, args.relation.clone(), args.kind.clone(), plan.dry_run);
    edges.check_relation().await?;
    edges.check_key().await?;
    let header = Header {
        source: source.shown().to_owned(),
        target: match target {
            Target::Remote(remote) => remote.client().base().to_owned(),
            Target::Local(_) => tally::redacted(args.into.store.as_deref().unwrap_or_default()),
        },
        sets: plan.sets.to_string(),
        object: plan.object.to_string(),
        subject: plan.subject.to_string(),
        counts: plan.counts.as_ref().map(Pattern::to_string),
        relation: args.relation.to_string(),
        kind: args.kind.as_ref().map(Name::to_string),
        dry_run: plan.dry_run,
    };
    let path = args.state.unwrap_or_else(|| header.file_name());
    let (mut state, mut at) = State::open(path, &header, source.runs(), args.restart)?;
    if let Some(reached) = &at
        && !plan.dry_run
        && reached.totals.added + reached.totals.present > 0
        && reached.witnesses.are_gone(&edges).await?
    {
        eprintln!("tally: what was imported before is no longer there, so all of it is read again");
        state.begin_anew(&header, source.runs())?;
        at = None;
    }
    let (resumed, at) = (at.is_some(), at.unwrap_or_default());
    let bar = progress::rows(if plan.dry_run { "reading" } else { "importing" });
    // What was read before says nothing about how fast it goes now.
    bar.set_position(at.totals.members);
    bar.reset_eta();
    let told = |members| bar.set_position(members);
    let rehearsed = Rehearsed::default();
    let work = Work { plan: &plan, source: &source, edges: &edges, state: &mut state, at, told: &told, rehearsed };
    let done = work.run().await;
    bar.finish_and_clear();
    let done = done.map_err(|failure| {
        let text = format!("{}; the same command goes on where this one stopped", failure.text());
        Failure::new(text).exiting(failure.exit)
    })?;
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let report = Report { header: &header, totals: &done.totals, state: &state, resumed, elapsed_ms };
    report.show(args.into.json)?;
    state.remove()?;
    if done.totals.refused == 0 { Ok(()) } else { Err(Failure::reported(1)) }
}
