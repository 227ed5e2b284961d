//! Idempotency keys: the first answer is stored in the same commit as its effect, and replayed.
//!
//! Calls are decided one after another, so a second call with the same key that arrives while
//! the first is in flight simply comes behind it, and finds the stored answer.

use std::collections::HashSet;

use crate::command::{Command, Once, Reply};
use crate::decide::{Context, attempt};
use crate::error::Refusal;
use crate::limits::{REMEMBERED_BYTES_MAX, REMEMBERED_COMMAND_BYTES_MAX};
use crate::rows::{Key, Replay, ReplayKey, Row};
use crate::rules::remembered;
use crate::view::{Stop, View};

/// Answers from memory, or decides and remembers. Says whether it was a replay.
pub fn decide(
    once: &Once,
    command: &Command,
    context: &Context<'_>,
    view: &mut View,
) -> Result<(Result<Reply, Refusal>, bool), Stop> {
    let key = Key::Replay(once.key.clone());
    if let Some(Row::Replay(replay)) = view.row_uncounted(&key)?
        && replay.expires_at > context.now()
    {
        if let Some(field) = first_difference(&replay.fields, &once.fields) {
            return Ok((Err(Refusal::IdempotencyKeyReused { field }), false));
        }
        let mut answer = serde_json::from_str(&replay.answer)
            .map_err(|error| Refusal::Broken(format!("a remembered answer is unreadable: {error}")))?;
        remembered::fill(&mut answer, command);
        return Ok((answer, true));
    }
    // The answer is written down, so it cannot be corrected afterwards.
    let exact = view.set_exact(true);
    let reply = attempt(command, context, view);
    view.set_exact(exact);
    let reply = reply?;
    if !is_worth_another_try(&reply) {
        let mut blank = reply.clone();
        remembered::blank(&mut blank, command)?;
        let answer = kept(&blank, command)?;
        let expires_at = context.now().plus_ms(context.catalog.idempotency_ttl_ms);
        let replay = Replay { fields: once.fields.clone(), answer, expires_at };
        view.set_uncounted(key, Some(Row::Replay(replay)))?;
    }
    Ok((reply, false))
}

/// The answer as it is kept: whole, or, where it is far larger than what was sent, only that it was given. Otherwise a
/// small request that is answered with much, such as the meta of an edge that was there already, would fill the store.
fn kept(reply: &Result<Reply, Refusal>, command: &Command) -> Result<String, Refusal> {
    let write = |reply| serde_json::to_string(reply).map_err(|error| Refusal::Broken(error.to_string()));
    let answer = write(reply)?;
    let bytes = answer.len();
    let commands = if let Command::Batch { commands, .. } = command { commands.len() } else { 1 };
    let bytes_max = REMEMBERED_BYTES_MAX + commands * REMEMBERED_COMMAND_BYTES_MAX;
    if bytes <= bytes_max || bytes <= bytes_max + 2 * brought_bytes(command) {
        return Ok(answer);
    }
    write(&Err(Refusal::Conflict(format!(
        "this was answered when it was first sent with this Idempotency-Key, and is not done again; the answer had \
         {bytes} bytes, too many to be kept: read what came of it"
    ))))
}

/// What a command brings along to be given back: names and meta.
fn brought_bytes(command: &Command) -> usize {
    if let Command::Batch { commands, .. } = command {
        return commands.iter().map(brought_bytes).sum();
    }
    let names = command.subject().map_or(0, |subject| subject.as_str().len())
        + command.object().map_or(0, |object| object.as_str().len())
        + command.counted().map_or(0, |[name, key]| name.len() + key.len())
        + match command {
            Command::Attend { subject, .. } => subject.as_str().len(),
            Command::Score { member, .. } => member.as_str().len(),
            _ => 0,
        };
    let (Command::Relate { meta: Some(meta), .. } | Command::Toggle { meta: Some(meta), .. }) = command else {
        return names;
    };
    names + serde_json::to_string(meta).map_or(0, |text| text.len())
}

/// A refusal that wrote nothing and is worth another try, so it is not remembered: a defect. A batch in which each
/// command stands on its own may have written others, and is.
fn is_worth_another_try(reply: &Result<Reply, Refusal>) -> bool {
    match reply {
        Err(Refusal::BatchRefused { cause, .. }) => matches!(**cause, Refusal::Broken(_) | Refusal::RateLimited(_)),
        // Nor is what a limit refused for now: the same call may pass later.
        other => matches!(other, Err(Refusal::Broken(_) | Refusal::RateLimited(_))),
    }
}

fn first_difference(stored: &[(String, u64)], sent: &[(String, u64)]) -> Option<String> {
    if stored == sent {
        return None;
    }
    // The fields of a large batch are many, so neither side is searched from end to end for each.
    let missing_from = |side: &[(String, u64)], fields: &[(String, u64)]| {
        let known: HashSet<_> = side.iter().collect();
        fields.iter().find(|field| !known.contains(field)).map(|(name, _)| name.clone())
    };
    missing_from(stored, sent).or_else(|| missing_from(sent, stored))
}

/// Drops remembered answers that have expired.
pub fn expire(replays: &[ReplayKey], context: &Context<'_>, view: &mut View) -> Result<Reply, Stop> {
    let keys: Vec<Key> = replays.iter().cloned().map(Key::Replay).collect();
    view.want(&keys, &[])?;
    let mut changed = false;
    for key in keys {
        if let Some(Row::Replay(replay)) = view.row_uncounted(&key)?
            && replay.expires_at <= context.now()
        {
            view.set_uncounted(key, None)?;
            changed = true;
        }
    }
    Ok(Reply::Done { changed })
}
