//! Many commands in one request.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tally::core::bounded::{AtMost, held_bytes};
use tally::core::command::{Batch, Command, Cost, Decided, Observe, Once, Rehearse, Written};
use tally::core::hash::fingerprint;
use tally::core::limits::ATOMIC_COMMANDS_MAX;
use tally::core::reply::{BatchReply, Reply};
use tally::core::rows::ReplayKey;
use tally::core::{Code, Refusal, unique};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Idempotent, tagged};
use crate::app::App;
use crate::door::memory::Room;
use crate::http::body::{no_room, parse, read_body};
use crate::http::problem::Problem;
use crate::http::reply::{self, BatchItem};
use crate::http::request::{Caller, Outcome};
use crate::http::withheld::{Shown, withhold};

/// Its routes.
pub(super) fn routes() -> OpenApiRouter<App> {
    tagged("Batches", "Many commands in one request").routes(routes!(batch))
}

/// A batch whose commands are read as `C`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent<C> {
    #[serde(default = "yes")]
    atomic: bool,
    #[serde(default)]
    dry_run: bool,
    #[serde(bound(deserialize = "C: Deserialize<'de>"))]
    commands: AtMost<C, COMMANDS_READ_MAX>,
}

/// Commands that are read at all. A body may hold millions of things that are none, and each would take many times its
/// own size before it is refused.
const COMMANDS_READ_MAX: usize = 10_000;

/// A batch with every command read or refused on its own.
struct Read {
    atomic: bool,
    dry_run: bool,
    commands: Vec<Result<Command, Refusal>>,
}

/// Reads a batch in one go; only where that fails, command by command, to say which is wrong.
fn read_batch(bytes: &[u8]) -> Result<Read, Problem> {
    if let Ok(Sent { atomic, dry_run, commands: AtMost(commands) }) = parse::<Sent<Command>>(bytes) {
        return Ok(Read { atomic, dry_run, commands: commands.into_iter().map(Ok).collect() });
    }
    let Sent { atomic, dry_run, commands: AtMost(commands) }: Sent<&RawValue> = parse(bytes)?;
    if commands.len() > COMMANDS_READ_MAX {
        // Too many, whatever they are.
        let nothing = |_| Err(Refusal::bad_request("too many commands to look at"));
        return Ok(Read { atomic, dry_run, commands: commands.into_iter().map(nothing).collect() });
    }
    let wrong = |error| Refusal::bad_request(format!("the command is wrong: {error}"));
    let commands = commands.into_iter().map(|raw| serde_json::from_str(raw.get()).map_err(wrong)).collect();
    Ok(Read { atomic, dry_run, commands })
}

/// About as many bytes as commands hold, now that they are read: many small values take far more room than their text.
fn held(commands: &[Result<Command, Refusal>]) -> usize {
    let behind = |command: &Command| {
        let meta = command.about().names.meta.map_or(0, |meta| held_bytes(meta));
        let members = if let Command::Unique(unique::Command::Observe(Observe { members, .. })) = command {
            members.iter().map(|member| size_of::<String>() + member.len()).sum()
        } else {
            0
        };
        meta + members
    };
    size_of_val(commands) + commands.iter().flatten().map(behind).sum::<usize>()
}

fn yes() -> bool {
    true
}

/// A batch.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes the body, which is read by hand")]
pub struct BatchBody {
    /// All or none (at most 500 commands), or each on its own (at most 10,000).
    #[schema(default = true)]
    atomic: Option<bool>,
    /// Say what would become of each, and do nothing; with `atomic: false`.
    #[schema(default = false)]
    dry_run: Option<bool>,
    /// The commands, in order.
    commands: Vec<Written>,
}

/// The answer to a batch.
#[derive(Serialize, ToSchema)]
pub struct BatchAnswer {
    /// One for each command, in order: its reply or its problem.
    results: Vec<BatchItem>,
}

/// Do many commands in one request
///
/// With `atomic` all take effect or none; a refused one refuses all, with its index. Otherwise each stands on its own.
#[utoipa::path(post, path = "/v1/batch", tag = "Batches", params(Idempotent),
    request_body(content = BatchBody), responses((status = 200, description = "What became of each", body = BatchAnswer)))]
pub async fn batch(caller: Caller, request: Request) -> Outcome {
    let headers = request.headers().clone();
    let bounds = &caller.app.settings.bounds;
    let room = request.extensions().get::<Arc<Room>>().cloned();
    let bytes = read_body(request, &caller.app, bounds.batch_bytes_max).await?;
    let sent = read_batch(&bytes)?;
    if room.is_some_and(|room| !room.grow(held(&sent.commands))) {
        return Err(no_room());
    }
    let commands_max = if sent.atomic { ATOMIC_COMMANDS_MAX } else { bounds.batch_commands_max };
    if sent.commands.len() > commands_max {
        let kind = if sent.atomic { "an atomic batch" } else { "a batch" };
        return Err(Problem::new(Code::TooLarge, format!("{kind} has at most {commands_max} commands")));
    }
    if sent.atomic && sent.dry_run {
        return Err(Problem::bad_request("dry_run goes with atomic: false"));
    }
    let once = match headers.contains_key("idempotency-key") && !sent.dry_run {
        true => caller.once(&headers, "/v1/batch", &bytes, sent.commands.len())?,
        false => None,
    };
    let commands = sent.commands.into_iter().map(|command| allowed(command?, &caller)).collect();
    if sent.atomic {
        atomic(&caller, commands, once).await
    } else {
        let command = match sent.dry_run {
            true => |commands| Command::from(Rehearse { commands }),
            false => |commands| Command::from(Batch { atomic: false, commands }),
        };
        each(&caller, commands, command, once).await
    }
}

/// Passes a command that the caller may send.
fn allowed(mut command: Command, caller: &Caller) -> Result<Command, Refusal> {
    if let Some(subject) = command.acting_mut() {
        // `me` means in a batch what it means in a path.
        *subject = caller.subject(subject.as_str()).map_err(|problem| Refusal::bad_request(&*problem.detail))?;
    }
    caller.may_send(&command).map_err(|denied| Refusal::Forbidden(denied.detail.into()))?;
    Ok(command)
}

async fn atomic(caller: &Caller, commands: Vec<Result<Command, Refusal>>, once: Option<Once>) -> Outcome {
    let indexed = commands
        .into_iter()
        .enumerate()
        .map(|(index, command)| command.map_err(|cause| Refusal::BatchRefused { index, cause: Box::new(cause) }));
    let commands = indexed.collect::<Result<Vec<_>, _>>()?;
    let decided = caller.apply(Command::from(Batch { atomic: true, commands }), once).await?;
    if let Ok(Reply::Batch(replies)) = decided.reply {
        return Ok(answer(caller, items(replies), decided.cost, decided.replayed).await);
    }
    reply::decided(StatusCode::OK, decided)
}

/// Each on its own, but in shared commits: chunks go to the queue in order, so order is kept.
async fn each(
    caller: &Caller,
    commands: Vec<Result<Command, Refusal>>,
    command: fn(Vec<Command>) -> Command,
    once: Option<Once>,
) -> Outcome {
    let mut results: Vec<Option<BatchItem>> = Vec::with_capacity(commands.len());
    let mut good: Vec<(usize, Command)> = Vec::with_capacity(commands.len());
    for (index, command) in commands.into_iter().enumerate() {
        match command {
            Ok(command) => {
                good.push((index, command));
                results.push(None);
            }
            Err(refusal) => results.push(Some(BatchItem::Problem(refusal.into()))),
        }
    }
    let mut places = Vec::new();
    let mut chunks = Vec::new();
    while !good.is_empty() {
        let rest = good.split_off(good.len().min(ATOMIC_COMMANDS_MAX));
        let (indices, commands): (Vec<usize>, Vec<Command>) = good.into_iter().unzip();
        let once = once.as_ref().map(|once| chunk_once(once, chunks.len()));
        chunks.push(caller.apply(command(commands), once));
        places.push(indices);
        good = rest;
    }
    let (mut cost, mut replayed) = (Cost::default(), once.is_some() && !places.is_empty());
    let mut chunks = chunks.into_iter();
    let mut outcomes = Vec::with_capacity(places.len());
    // The first holds the request's own key: one that is reused is refused before anything is done.
    if once.is_some()
        && let Some(first) = chunks.next()
    {
        let outcome = first.await;
        if let Ok(decided @ Decided { reply: Err(_), .. }) = outcome {
            return reply::decided(StatusCode::OK, decided);
        }
        outcomes.push(outcome);
    }
    outcomes.extend(join_all(chunks).await);
    for (indices, outcome) in places.into_iter().zip(outcomes) {
        let items = chunk_items(outcome, indices.len(), &mut cost, &mut replayed)?;
        for (index, item) in indices.into_iter().zip(items) {
            results[index] = Some(item);
        }
    }
    Ok(answer(caller, results.into_iter().flatten().collect(), cost, replayed).await)
}

/// What became of a chunk. A reused idempotency key is about the whole request.
fn chunk_items(
    outcome: Result<Decided, Problem>,
    commands: usize,
    cost: &mut Cost,
    replayed: &mut bool,
) -> Result<Vec<BatchItem>, Problem> {
    let decided = match outcome {
        Ok(decided) => decided,
        Err(problem) => {
            *replayed = false;
            return Ok((0..commands).map(|_| BatchItem::Problem(problem.clone())).collect());
        }
    };
    cost.reads += decided.cost.reads;
    cost.writes += decided.cost.writes;
    *replayed &= decided.replayed;
    let replies = BatchReply::try_from(decided.reply?).map_err(|other| {
        tracing::error!(?other, "a batch was answered as something else");
        Problem::internal()
    })?;
    Ok(items(replies))
}

/// Each chunk commits on its own, so each remembers its own answer. The first is held to every field of
/// the request, so that it can name the one that differs; for the others one fingerprint of all is enough.
fn chunk_once(once: &Once, chunk: usize) -> Once {
    if chunk == 0 {
        return once.clone();
    }
    let mut all: Vec<[u8; 8]> = once.fields.iter().map(|(_, field)| field.to_be_bytes()).collect();
    // Fields may come in another order.
    all.sort_unstable();
    let all = all.concat();
    let fields = Arc::new(vec![("body".to_owned(), fingerprint(&[&all]))]);
    let caller = format!("{chunk}#{}", once.key.caller);
    Once { key: ReplayKey { caller, key: once.key.key.clone() }, fields }
}

fn items(replies: Vec<Result<Reply, Refusal>>) -> Vec<BatchItem> {
    let item = |reply: Result<Reply, Refusal>| match reply {
        Ok(reply) => BatchItem::Reply(Shown::Whole(reply)),
        Err(refusal) => BatchItem::Problem(refusal.into()),
    };
    replies.into_iter().map(item).collect()
}

async fn answer(caller: &Caller, mut results: Vec<BatchItem>, cost: Cost, replayed: bool) -> Response {
    let replies = results.iter_mut().filter_map(|item| match item {
        BatchItem::Reply(shown) => Some(shown),
        BatchItem::Problem(_) => None,
    });
    withhold(caller, replies).await;
    reply::with_headers(reply::json(StatusCode::OK, &BatchAnswer { results }), cost, replayed)
}
