//! Idempotency keys: the first answer is stored in the same commit as its effect, and replayed.
//!
//! Calls are decided one after another, so a second call with the same key that arrives while
//! the first is in flight simply comes behind it, and finds the stored answer.

use std::collections::HashSet;
use std::sync::Arc;

use super::remembered;
use crate::command::{Command, Once};
use crate::decide::{Context, attempt};
use crate::error::Refusal;
use crate::limits::{ATOMIC_COMMANDS_MAX, REMEMBERED_BYTES_MAX, REMEMBERED_COMMAND_BYTES_MAX};
use crate::reply::{Done, Reply};
use crate::rows::{Key, Replay, ReplayKey, Row};
use crate::view::{Stop, View};
use crate::{batch, prints};

/// Answers from memory, or decides and remembers. Says whether it was a replay.
pub(crate) fn decide(
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
    if is_kept(&reply) {
        let mut blank = reply.clone();
        remembered::blank(&mut blank, command)?;
        let answer = kept(&blank, command)?;
        let expires_at = context.now().plus_ms(context.catalog.idempotency_ttl_ms);
        let replay = Replay { fields: Arc::new(nameless(&once.fields)), answer, expires_at };
        view.set_uncounted(key, Some(Row::Replay(replay)))?;
    }
    Ok((reply, false))
}

/// The answer as it is kept: whole, or, where it is far larger than what it is about, only that it was given. Otherwise a
/// small request that is answered with much, such as the meta of an edge that was there already, would fill the store.
fn kept(reply: &Result<Reply, Refusal>, command: &Command) -> Result<String, Refusal> {
    let write = |reply| serde_json::to_string(reply).map_err(|error| Refusal::Broken(error.to_string()));
    let answer = write(reply)?;
    let commands = if let Command::Batch(batch::Command::Batch(batch)) = command { batch.commands.len() } else { 1 };
    if answer.len() <= answer_bytes_max(commands) {
        return Ok(answer);
    }
    write(&Err(Refusal::Conflict(format!(
        "this was answered when it was first sent with this Idempotency-Key, and is not done again; the answer had \
         {} bytes, too many to be kept: read what came of it",
        answer.len()
    ))))
}

fn answer_bytes_max(commands: usize) -> usize {
    REMEMBERED_BYTES_MAX + commands * REMEMBERED_COMMAND_BYTES_MAX
}

impl Once {
    /// At most so many bytes are remembered for a request of so many commands, whatever is answered. A batch that is not
    /// atomic is remembered in parts.
    pub fn bytes_max(&self, commands: usize) -> usize {
        /// Around each row, and each field.
        const ROW_BYTES: usize = 256;
        const FIELD_BYTES: usize = 32;
        let fields = self.fields.iter().map(|(name, _)| prints::field(name).len() + FIELD_BYTES).sum::<usize>();
        let rows = commands.div_ceil(ATOMIC_COMMANDS_MAX).max(1);
        fields + rows * (ROW_BYTES + answer_bytes_max(0)) + answer_bytes_max(commands) - answer_bytes_max(0)
    }
}

/// What is not remembered. A refusal that wrote nothing and is worth another try: a defect, and what a limit refused for
/// now. And one of a request that is itself wrong or too large: it is refused again. A batch in which each command stands
/// on its own may have written others, and is remembered.
fn is_kept(reply: &Result<Reply, Refusal>) -> bool {
    let Err(refusal) = reply else { return true };
    let cause = if let Refusal::BatchRefused { cause, .. } = refusal { &**cause } else { refusal };
    !matches!(cause, Refusal::Broken(_) | Refusal::RateLimited(_) | Refusal::BadRequest(_) | Refusal::TooLarge(_))
}

/// The fields as they are kept: with the names of ours alone, as the others are somebody's own words.
fn nameless(fields: &[(String, u64)]) -> Vec<(String, u64)> {
    fields.iter().map(|(name, print)| (prints::field(name).to_owned(), *print)).collect()
}

/// The first field that differs, by the name that the request at hand has for it.
fn first_difference(stored: &[(String, u64)], sent: &[(String, u64)]) -> Option<String> {
    // The fields of a large batch are many, so neither side is searched from end to end for each.
    let known: HashSet<_> = stored.iter().map(|(name, print)| (name.as_str(), *print)).collect();
    if let Some((name, _)) = sent.iter().find(|(name, print)| !known.contains(&(prints::field(name), *print))) {
        return Some(name.clone());
    }
    let said: HashSet<_> = sent.iter().map(|(name, print)| (prints::field(name), *print)).collect();
    stored.iter().find(|(name, print)| !said.contains(&(name.as_str(), *print))).map(|(name, _)| name.clone())
}

/// Drops remembered answers that have expired.
pub(super) fn expire(replays: &[ReplayKey], context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
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
    Ok(Done { changed })
}
