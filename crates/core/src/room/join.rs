//! Taking a ticket.
//!
//! A join stands on the room and on what its own subject has there. The gate is looked at only while nobody waits: then there is
//! no queue, and whoever comes may go straight in.

use super::reply::TicketReply;
use super::rows::{Gate, Phase, RoomCount, queue};
use super::rule::{Who, answer, entry_key, gate, now_is, put_gate, put_room, room, ticket, ticket_key};
use super::{Join, JoinBy, Mode, TOKEN_BYTES_MAX, gate as at_gate, seal};
use crate::condition::Facts;
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::limit;
use crate::room::def::JoinPer;
use crate::rows::{Key, Room, Row, Seq, Ticket, TicketState};
use crate::time::Timestamp;
use crate::view::{Stop, View};

/// Takes a ticket, or gives the one that there is.
pub(super) fn join(command: &Join, context: &Context<'_>, view: &mut View) -> Result<TicketReply, Stop> {
    let name = &command.room;
    // Asked for together: mostly all of it is needed.
    let _ = view.has(&Key::Gate(name.clone()));
    let room = room(name, view)?;
    let token = command.token.as_deref().unwrap_or("");
    if token.len() > TOKEN_BYTES_MAX || command.token.as_ref().is_some_and(String::is_empty) {
        return Err(Refusal::bad_request(format!("token has 1 to {TOKEN_BYTES_MAX} bytes")).into());
    }
    let who = Who::of(context.auth);
    let subject = subject(command, &room, &who, token, view)?;
    let last = entry_key(name, &subject, "");
    let mut rows = vec![last.clone()];
    if !token.is_empty() {
        rows.push(entry_key(name, &subject, token));
    }
    view.want(&rows, &[RoomCount::Version.of(name)])?;
    let known = known(name, &room, &subject, token, &who, context, view)?;
    if let Some((seq, ticket)) = known {
        let mut reply = answer(name, &room, seq, &ticket, context, view)?;
        reply.facts.goes_straight_in = jumps(&room, &ticket, context)?;
        return Ok(reply);
    }
    may_join(&room, context.now())?;
    pass_limit(command, &room, &subject, context, view)?;
    take(name, room, subject, token, context, view)
}

/// Who joins: whoever the caller may speak for, or somebody made for it.
fn subject(command: &Join, room: &Room, who: &Who, token: &str, view: &mut View) -> Result<SubjectId, Stop> {
    let refused = |text: &str| Err(Stop::Refused(Refusal::Forbidden(text.into())));
    let join = room.settings.join;
    match (who, &command.subject) {
        (Who::Server, Some(subject)) => return Ok(subject.clone()),
        (Who::Server, None) => {}
        (Who::User(_), _) if join == JoinBy::Service => {
            return refused("only servers may join people to this room; it has join = \"service\"");
        }
        (Who::User(own), None) => return Ok(own.clone()),
        (Who::User(own), Some(subject)) if subject == own => return Ok(own.clone()),
        (Who::User(_), Some(_)) => return refused("a user joins as itself"),
        (Who::Nobody, _) if join != JoinBy::Any => return Err(Refusal::SignIn.into()),
        (Who::Nobody, Some(named)) if !token.is_empty() => {
            // Whoever knows the token of somebody's ticket may have it; nobody gets another's by naming them.
            if view.row_uncounted(&entry_key(&command.room, named, token))?.is_some() {
                return Ok(named.clone());
            }
        }
        (Who::Nobody, _) => {}
    }
    let from = if token.is_empty() { &command.fresh } else { token };
    Ok(SubjectId::new(&seal::stranger(&room.secret, from))?)
}

/// The ticket that there is already.
fn known(
    name: &Name,
    room: &Room,
    subject: &SubjectId,
    token: &str,
    who: &Who,
    context: &Context<'_>,
    view: &mut View,
) -> Result<Option<(Seq, Ticket)>, Stop> {
    if !token.is_empty()
        && let Some(seq) = view.kept_counted(&entry_key(name, subject, token), Row::into_entry)?
        && let Some(ticket) = ticket(name, seq, view)?
    {
        return Ok(Some((seq, ticket)));
    }
    if room.settings.one_ticket_per_subject
        && who.may_have(subject)
        && let Some(seq) = view.kept(&entry_key(name, subject, ""), Row::into_entry)?
        && let Some(ticket) = ticket(name, seq, view)?
        && !now_is(&ticket, context.now()).is_over()
    {
        return Ok(Some((seq, ticket)));
    }
    Ok(None)
}

fn may_join(room: &Room, now: Timestamp) -> Result<(), Refusal> {
    let closed = |text: &str| Err(Refusal::RoomClosed(text.into()));
    match room.settings.mode {
        Mode::Drain => return closed("nobody new joins this room: it is being emptied"),
        Mode::Reject => return closed("nobody joins this room"),
        Mode::Auto | Mode::Hold | Mode::Off => {}
    }
    match room.settings.closes_at {
        Some(at) if at <= now => closed(&format!("this room closed at {at}")),
        Some(_) | None => Ok(()),
    }
}

fn pass_limit(
    command: &Join,
    room: &Room,
    subject: &SubjectId,
    context: &Context<'_>,
    view: &mut View,
) -> Result<(), Stop> {
    let broken = |error: String| Refusal::Broken(format!("rate_limit of room {}: {error}", command.room));
    let Some(join) = room.settings.rate_limit(&command.room).map_err(broken)? else { return Ok(()) };
    let whose = match join.per {
        JoinPer::Subject => subject.as_str(),
        JoinPer::Ip => command.ip.as_deref().unwrap_or("unknown"),
        JoinPer::All => "",
    };
    limit::pass(Some(&join.limit), None, whose, context, view)
}

/// Writes a new ticket.
fn take(
    name: &Name,
    mut room: Room,
    subject: SubjectId,
    token: &str,
    context: &Context<'_>,
    view: &mut View,
) -> Result<TicketReply, Stop> {
    let now = context.now();
    let last = entry_key(name, &subject, "");
    let previous = view.kept(&last, Row::into_entry)?;
    let state = match room.phase {
        Phase::Before if room.settings.is_shuffled() => TicketState::BeforeOpen,
        // Who comes while the doors are being opened is not among those who came early: nothing is drawn for it.
        Phase::Before | Phase::Opening | Phase::Open | Phase::Deleting => TicketState::Waiting,
    };
    let mut straight = None;
    if room.phase == Phase::Open && !room.awake {
        straight = go_straight_in(name, &room, bypasses(&room, &subject, context)?, context, view)?;
        if straight.is_none() {
            room.awake = true;
        }
    }
    let seq = view.take_number(&queue(name));
    let settings = &room.settings;
    let alive = settings.idle_ttl_ms.min(settings.ticket_ttl_ms);
    let mut ticket = Ticket { previous, ..Ticket::new(subject.clone(), token, state, now, now.plus_ms(alive)) };
    if let Some(gate) = straight {
        ticket.state = TicketState::Ready;
        ticket.due_at = now.plus_ms(settings.claim_ttl_ms);
        for count in [RoomCount::Inside, RoomCount::Ready, RoomCount::Admitted] {
            view.add(&count.of(name), 1)?;
        }
        put_gate(name, Gate { passed: seq, ..gate }, view)?;
    } else if room.awake && room.phase == Phase::Open {
        wake(name, &room, context, view)?;
    }
    view.set(ticket_key(name, seq), Some(Row::Ticket(ticket.clone())))?;
    if !token.is_empty() {
        view.set(entry_key(name, &subject, token), Some(Row::Entry(seq)))?;
    }
    view.set_uncounted(last, Some(Row::Entry(seq)))?;
    view.add(&RoomCount::Version.of(name), 0)?;
    let mut reply = answer(name, &room, seq, &ticket, context, view)?;
    reply.facts.is_new = true;
    reply.facts.goes_straight_in = jumps(&room, &ticket, context)?;
    Ok(reply)
}

/// Whether a ticket that waits is to be let in out of turn. Also one that was there: whoever was to do it may have died.
fn jumps(room: &Room, ticket: &Ticket, context: &Context<'_>) -> Result<bool, Refusal> {
    let waits = match now_is(ticket, context.now()) {
        TicketState::BeforeOpen | TicketState::Waiting => true,
        TicketState::Ready | TicketState::Admitted | TicketState::Done | TicketState::Left | TicketState::Expired => {
            false
        }
    };
    Ok(waits && (room.settings.mode == Mode::Off || bypasses(room, &ticket.subject, context)?))
}

/// The gate as it is when one more has gone straight in; nothing where somebody has to wait.
fn go_straight_in(
    name: &Name,
    room: &Room,
    bypasses: bool,
    context: &Context<'_>,
    view: &mut View,
) -> Result<Option<Gate>, Stop> {
    let now = context.now();
    let mut gate = gate(name, view)?;
    if room.settings.mode == Mode::Off {
        return Ok(Some(gate));
    }
    if room.settings.mode != Mode::Auto {
        return Ok(None);
    }
    let inside = view.total_decided(&RoomCount::Inside.of(name))?;
    if at_gate::capacity_left(room, inside) == 0 {
        return Ok(None);
    }
    at_gate::refill(&mut gate, room, now);
    if !bypasses {
        if gate.budget < at_gate::ONE {
            return Ok(None);
        }
        gate.budget -= at_gate::ONE;
    }
    at_gate::count_let_in(&mut gate, 1, 0, now);
    at_gate::keep_minute(name, &mut gate, now, view)?;
    Ok(Some(gate))
}

/// Has the gate look, unless it does so by itself already.
fn wake(name: &Name, room: &Room, context: &Context<'_>, view: &mut View) -> Result<(), Stop> {
    let was = view.kept(&Key::Room(name.clone()), Row::into_room)?;
    if was.is_some_and(|was| was.awake) {
        return Ok(());
    }
    let now = context.now();
    let mut gate = gate(name, view)?;
    let inside = view.total_decided(&RoomCount::Inside.of(name))?;
    at_gate::refill(&mut gate, room, now);
    gate.is_full = at_gate::capacity_left(room, inside) == 0;
    gate.due_at = at_gate::next_look(&gate, room, now);
    put_room(name, room.clone(), view)?;
    put_gate(name, gate, view)
}

/// Whether the room's condition lets this one go straight in. One that fails or errs does not.
fn bypasses(room: &Room, subject: &SubjectId, context: &Context<'_>) -> Result<bool, Refusal> {
    let broken = |error: String| Refusal::Broken(format!("bypass: {error}"));
    let Some(bypass) = room.settings.bypass().map_err(broken)? else { return Ok(false) };
    Ok(bypass.holds(Facts {
        auth: context.auth,
        object: serde_json::Value::Null,
        subject: Some(subject.as_str()),
        meta: None,
        now: context.now(),
    }))
}
