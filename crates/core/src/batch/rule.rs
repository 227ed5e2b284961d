//! Several commands as one: all or none, or each on its own, in one commit either way.

use crate::command::Command;
use crate::decide::{Context, attempt};
use crate::error::Refusal;
use crate::limits::ATOMIC_COMMANDS_MAX;
use crate::reply::BatchReply;
use crate::time::Stamp;
use crate::view::{Stop, View};

/// Decides the commands in order, each seeing what those before it did.
pub(super) fn decide(
    atomic: bool,
    commands: &[Command],
    context: &Context<'_>,
    view: &mut View,
) -> Result<BatchReply, Stop> {
    if commands.len() > ATOMIC_COMMANDS_MAX {
        return Err(Refusal::TooLarge(format!("a batch has at most {ATOMIC_COMMANDS_MAX} commands")).into());
    }
    let mut replies = Vec::with_capacity(commands.len());
    let mut missed = false;
    for (index, command) in commands.iter().enumerate() {
        if matches!(command, Command::Batch(_)) {
            return Err(Refusal::bad_request("a batch cannot hold a batch").into());
        }
        // Its own place in time, and its own fresh id: two of them may each begin a job.
        let (stamp, time) = (Stamp(context.stamp.0 + index as u64), Stamp(context.time.0 + index as u64));
        let within = Context { stamp, time, id: context.id.wrapping_add(index as u64), ..*context };
        match attempt(command, &within, view) {
            Ok(Err(cause)) if atomic && !missed && !view.misses() => {
                return Err(Refusal::BatchRefused { index, cause: Box::new(cause) }.into());
            }
            Ok(reply) => replies.push(reply),
            // Go on, so that one load brings what all of them miss.
            Err(_) => missed = true,
        }
    }
    if missed { Err(Stop::Miss) } else { Ok(replies) }
}

/// What would become of the commands, each on its own, if they were sent now. Nothing of it stays.
pub(super) fn rehearse(commands: &[Command], context: &Context<'_>, view: &mut View) -> Result<BatchReply, Stop> {
    let start = view.savepoint();
    let replies = decide(false, commands, context, view);
    view.rollback(start);
    replies
}
