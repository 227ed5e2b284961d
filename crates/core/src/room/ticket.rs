//! What a ticket's holder does with it.

use super::reply::TicketReply;
use super::rows::RoomCount;
use super::rule::{Who, answer, held, make_place, note_gone, now_is, place_of, room, ticket_key, turn};
use super::{Beat, Claim, Finish, JoinBy, Leave};
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::Name;
use crate::rows::{Key, Room, Row, Seq, Ticket, TicketState};
use crate::view::{Stop, View};

/// The room and the ticket, with all that is mostly needed along with them.
fn find(name: &Name, called: &str, view: &mut View) -> Result<(Room, Seq, Ticket), Stop> {
    let _ = view.has(&Key::Gate(name.clone()));
    let room = room(name, view)?;
    view.want(&[], &[RoomCount::Version.of(name)])?;
    let (seq, ticket) = held(name, &room, called, view)?;
    Ok((room, seq, ticket))
}

fn gone(state: TicketState) -> Refusal {
    let became = match state {
        TicketState::Left => "was given up",
        TicketState::Done => "is done",
        TicketState::Expired
        | TicketState::BeforeOpen
        | TicketState::Waiting
        | TicketState::Ready
        | TicketState::Admitted => "has expired",
    };
    Refusal::TicketGone(format!("this ticket {became}; join again for a new place"))
}

/// Stays alive. Written only when half of the time is over, or a million waiting would be thousands of writes a second.
pub(super) fn beat(command: &Beat, context: &Context<'_>, view: &mut View) -> Result<TicketReply, Stop> {
    let name = &command.room;
    let (room, seq, mut ticket) = find(name, &command.ticket, view)?;
    let (now, settings) = (context.now(), &room.settings);
    let (ttl, until) = match now_is(&ticket, now) {
        TicketState::BeforeOpen | TicketState::Waiting => {
            let end = ticket.joined_at.plus_ms(settings.ticket_ttl_ms);
            (settings.idle_ttl_ms, now.plus_ms(settings.idle_ttl_ms).min(end))
        }
        TicketState::Admitted if settings.renewable => {
            (settings.admission_ttl_ms, now.plus_ms(settings.admission_ttl_ms))
        }
        TicketState::Ready | TicketState::Admitted | TicketState::Done | TicketState::Left | TicketState::Expired => {
            (0, ticket.due_at)
        }
    };
    if until > ticket.due_at && until.0 - ticket.due_at.0 >= ttl / 2 {
        ticket.due_at = until;
        view.set(ticket_key(name, seq), Some(Row::Ticket(ticket.clone())))?;
    }
    answer(name, &room, seq, &ticket, context, view)
}

/// Goes in. Asked for again, it is the same admission.
pub(super) fn claim(command: &Claim, context: &Context<'_>, view: &mut View) -> Result<TicketReply, Stop> {
    let name = &command.room;
    let (room, seq, ticket) = find(name, &command.ticket, view)?;
    if room.settings.join == JoinBy::Token {
        match Who::of(context.auth) {
            Who::Nobody => return Err(Refusal::SignIn.into()),
            who if !who.may_have(&ticket.subject) => {
                return Err(Refusal::Forbidden("only whoever joined claims this ticket".into()).into());
            }
            Who::Server if context.auth.get("kind").is_some_and(|kind| kind == "key") => {
                return Err(
                    Refusal::Forbidden("this room's tickets are claimed with their users' own tokens".into()).into()
                );
            }
            Who::Server | Who::User(_) => {}
        }
    }
    let now = context.now();
    let ticket = match now_is(&ticket, now) {
        TicketState::Ready => turn(name, &room, (seq, &ticket), TicketState::Admitted, now, view)?,
        TicketState::Admitted => ticket,
        TicketState::BeforeOpen | TicketState::Waiting => {
            return Err(Refusal::NotReady("it is not this ticket's turn yet".into()).into());
        }
        over @ (TicketState::Done | TicketState::Left | TicketState::Expired) => return Err(gone(over).into()),
    };
    answer(name, &room, seq, &ticket, context, view)
}

/// Is done inside: whoever waits has the place at once.
pub(super) fn finish(command: &Finish, context: &Context<'_>, view: &mut View) -> Result<TicketReply, Stop> {
    let name = &command.room;
    let (room, seq, mut ticket) = find(name, &command.ticket, view)?;
    let now = context.now();
    match now_is(&ticket, now) {
        TicketState::Ready | TicketState::Admitted => {
            ticket = turn(name, &room, (seq, &ticket), TicketState::Done, now, view)?;
            make_place(name, now, view)?;
        }
        TicketState::Done => {}
        TicketState::BeforeOpen | TicketState::Waiting => {
            return Err(Refusal::NotReady("only who is inside can be done; a place in the queue is left".into()).into());
        }
        over @ (TicketState::Left | TicketState::Expired) => return Err(gone(over).into()),
    }
    answer(name, &room, seq, &ticket, context, view)
}

/// Gives a ticket up. One that is over stays what it is.
pub(super) fn leave(command: &Leave, context: &Context<'_>, view: &mut View) -> Result<TicketReply, Stop> {
    let name = &command.room;
    let (room, seq, mut ticket) = find(name, &command.ticket, view)?;
    let now = context.now();
    match now_is(&ticket, now) {
        TicketState::BeforeOpen | TicketState::Waiting => {
            let gone: Vec<u64> = place_of(&room, seq, &ticket).into_iter().collect();
            ticket = turn(name, &room, (seq, &ticket), TicketState::Left, now, view)?;
            note_gone(name, gone, now, view)?;
        }
        TicketState::Ready => {
            ticket = turn(name, &room, (seq, &ticket), TicketState::Left, now, view)?;
            make_place(name, now, view)?;
        }
        TicketState::Admitted => {
            ticket = turn(name, &room, (seq, &ticket), TicketState::Done, now, view)?;
            make_place(name, now, view)?;
        }
        TicketState::Done | TicketState::Left | TicketState::Expired => {}
    }
    answer(name, &room, seq, &ticket, context, view)
}
