//! What becomes of tickets because time has passed: given up without a sign of life, and forgotten long after.

use super::rule::{entry_key, make_place, note_gone, place_of, ticket_key, turn};
use super::{CleanRooms, ExpireTickets, audit};
use crate::decide::Context;
use crate::id::Name;
use crate::reply::Done;
use crate::rows::{Key, Room, Row, RowKind, Seq, Ticket, TicketState};
use crate::time::Timestamp;
use crate::view::{Stop, View};

/// Gives up tickets whose time is over, and takes away those that are over for long enough.
pub(super) fn tickets(command: &ExpireTickets, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
    let now = context.now();
    let rows: Vec<Key> = command.tickets.iter().cloned().map(Key::Ticket).collect();
    let mut rooms: Vec<&Name> = command.tickets.iter().map(|key| &key.room).collect();
    rooms.sort();
    rooms.dedup();
    let all: Vec<Key> = rooms.iter().map(|room| Key::Room((*room).clone())).chain(rows).collect();
    view.want(&all, &[])?;
    let steps = rooms.into_iter().map(|name| {
        let of_room = command.tickets.iter().filter(|key| key.room == *name).map(|key| key.seq);
        in_room(name, of_room.collect(), now, view)
    });
    Ok(Done { changed: crate::subject::forget::each(steps)? })
}

fn in_room(name: &Name, seqs: Vec<Seq>, now: Timestamp, view: &mut View) -> Result<bool, Stop> {
    let room = view.kept(&Key::Room(name.clone()), Row::into_room)?;
    let (mut gone, mut changed, mut makes_place) = (Vec::new(), false, false);
    let mut due = Vec::new();
    for seq in seqs {
        if let Some(ticket) = view.kept(&ticket_key(name, seq), Row::into_ticket)?
            && ticket.due_at <= now
        {
            due.push((seq, ticket));
        }
    }
    want_entries(name, &due, room.is_some(), view)?;
    for (seq, ticket) in &due {
        changed = true;
        match &room {
            Some(room) if !ticket.state.is_over() => {
                gone.extend(place_of(room, *seq, ticket));
                makes_place |= ticket.state.is_inside();
                give_up(name, room, *seq, ticket, now, view)?;
            }
            Some(_) | None => remove(name, *seq, ticket, view)?,
        }
    }
    note_gone(name, gone, now, view)?;
    if makes_place {
        make_place(name, now, view)?;
    }
    Ok(changed)
}

/// Asks for what will be needed at once.
fn want_entries(name: &Name, due: &[(Seq, Ticket)], has_room: bool, view: &mut View) -> Result<(), Stop> {
    let over = due.iter().filter(|(_, ticket)| ticket.state.is_over() || !has_room);
    let entries = over.flat_map(|(_, ticket)| {
        let token = (!ticket.token.is_empty()).then(|| entry_key(name, &ticket.subject, &ticket.token));
        [Some(entry_key(name, &ticket.subject, "")), token].into_iter().flatten()
    });
    view.want(&entries.collect::<Vec<_>>(), &[])
}

fn give_up(name: &Name, room: &Room, seq: Seq, ticket: &Ticket, now: Timestamp, view: &mut View) -> Result<(), Stop> {
    turn(name, room, (seq, ticket), TicketState::Expired, now, view).map(|_| ())
}

/// Takes a ticket away, with all that leads to it.
pub(super) fn remove(name: &Name, seq: Seq, ticket: &Ticket, view: &mut View) -> Result<(), Stop> {
    let last = entry_key(name, &ticket.subject, "");
    if view.kept(&last, Row::into_entry)? == Some(seq) {
        view.set_uncounted(last, ticket.previous.map(Row::Entry))?;
    }
    take_away(name, seq, ticket, view)
}

/// Takes a ticket away, with what its subject's token stands for.
pub(super) fn take_away(name: &Name, seq: Seq, ticket: &Ticket, view: &mut View) -> Result<(), Stop> {
    for count in audit::counts(ticket) {
        view.add(&count.of(name), -1)?;
    }
    if !ticket.token.is_empty() {
        let token = entry_key(name, &ticket.subject, &ticket.token);
        if view.kept(&token, Row::into_entry)? == Some(seq) {
            view.set_uncounted(token, None)?;
        }
    }
    view.set_uncounted(ticket_key(name, seq), None)
}

/// Takes away what is only kept for a while.
pub(super) fn clean(command: &CleanRooms, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
    let kept = |key: &&Key| matches!(key.kind(), RowKind::Gone | RowKind::Minute);
    let rows: Vec<Key> = command.rows.iter().filter(kept).cloned().collect();
    view.want(&rows, &[])?;
    let mut changed = false;
    for key in rows {
        let due = view.row_uncounted(&key)?.and_then(|row| row.due());
        if due.is_some_and(|due| due <= context.now()) {
            view.set_uncounted(key, None)?;
            changed = true;
        }
    }
    Ok(Done { changed })
}
