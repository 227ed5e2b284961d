//! The tickets of a subject that goes: live ones at once, so that whoever comes back begins anew, and all others by the job.

use super::Command;
use super::expire::take_away;
use super::rule::{entry_key, make_place, note_gone, place_of, ticket_key};
use crate::id::{Name, SubjectId};
use crate::rows::{Key, Row, Ticket};
use crate::subject::{Counted, Going, each};
use crate::time::Timestamp;
use crate::view::{Stop, View};

/// Tickets of one subject in one room that one step takes. Each leads to the next, and a decision loads only so often.
const TICKETS_PER_STEP: usize = 20;

impl Counted for Command {
    fn forget_at_once(going: &Going<'_, SubjectId>, view: &mut View) -> Result<bool, Stop> {
        let now = going.context.now();
        let all = now.plus_ms(1);
        each(going.names.rooms.iter().map(|room| tickets(room, going.who, all, now, view).map(|step| step.any)))
    }

    fn forget_step(going: &Going<'_, SubjectId>, view: &mut View) -> Result<bool, Stop> {
        let (before, now) = (going.before.time(), going.context.now());
        each(going.names.rooms.iter().map(|room| tickets(room, going.who, before, now, view).map(|step| step.more)))
    }
}

struct Step {
    any: bool,
    more: bool,
}

/// Takes tickets away that a subject took before a time, from the newest on.
fn tickets(name: &Name, subject: &SubjectId, before: Timestamp, now: Timestamp, view: &mut View) -> Result<Step, Stop> {
    let room = view.kept(&Key::Room(name.clone()), Row::into_room)?;
    let last = entry_key(name, subject, "");
    let mut next = view.kept(&last, Row::into_entry)?;
    let (mut kept, mut gone, mut taken, mut makes_place) = (None, Vec::new(), 0, false);
    while let Some(seq) = next.filter(|_| taken < TICKETS_PER_STEP) {
        let Some(ticket) = view.kept(&ticket_key(name, seq), Row::into_ticket)? else {
            next = None;
            break;
        };
        next = ticket.previous;
        if ticket.joined_at >= before {
            kept = Some((seq, ticket));
            continue;
        }
        gone.extend(room.as_ref().and_then(|room| place_of(room, seq, &ticket)));
        makes_place |= ticket.state.is_inside();
        take_away(name, seq, &ticket, view)?;
        taken += 1;
    }
    if taken > 0 {
        match kept {
            Some((seq, ticket)) => {
                let ticket = Ticket { previous: next, ..ticket };
                view.set_uncounted(ticket_key(name, seq), Some(Row::Ticket(ticket)))?;
            }
            None => view.set_uncounted(last, next.map(Row::Entry))?,
        }
    }
    note_gone(name, gone, now, view)?;
    if makes_place {
        make_place(name, now, view)?;
    }
    Ok(Step { any: taken > 0, more: next.is_some() && taken > 0 })
}
