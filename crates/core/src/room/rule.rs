//! What the rules of rooms share: who asks, what a room is like now, and what a ticket is by now.

use super::rows::{Gate, NEVER, Phase, RoomCount};
use super::seal;
use crate::command::Auth;
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::rows::{EntryKey, Gone, GoneKey, Key, OrderKey, Room, Row, Seq, Standing, Ticket, TicketKey, TicketState};
use crate::time::Timestamp;
use crate::view::{Stop, View};

use super::reply::{Figures, TicketReply};
use super::rows::log;

/// How long it is kept what left the queue: whoever is further behind begins anew.
const GONE_TTL_MS: u64 = 600_000;

/// Who asks, as far as rooms go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Who {
    /// A server of the app, which acts for its users; or Tally itself.
    Server,
    /// A user, with a token.
    User(SubjectId),
    /// Anybody.
    Nobody,
}

impl Who {
    pub(super) fn of(auth: &Auth) -> Self {
        match auth.get("kind").and_then(|kind| kind.as_str()) {
            Some("user") => {
                let subject = auth.get("subject").and_then(|subject| subject.as_str());
                subject.and_then(|subject| SubjectId::new(subject).ok()).map_or(Self::Nobody, Self::User)
            }
            Some("key" | "dev" | "system") => Self::Server,
            Some(_) | None => Self::Nobody,
        }
    }

    /// Whether it may have what belongs to a subject.
    pub(super) fn may_have(&self, subject: &SubjectId) -> bool {
        match self {
            Self::Server => true,
            Self::User(own) => own == subject,
            Self::Nobody => false,
        }
    }
}

/// A refusal of a room that is not there.
pub(super) fn no_room(room: &Name) -> Refusal {
    Refusal::RoomNotFound(room.clone())
}

/// The room, unless it is gone.
pub(super) fn room(name: &Name, view: &mut View) -> Result<Room, Stop> {
    let room = view.kept(&Key::Room(name.clone()), Row::into_room)?;
    Ok(room.filter(|room| room.phase != Phase::Deleting).ok_or_else(|| no_room(name))?)
}

/// The gate, which is decided on.
pub(super) fn gate(name: &Name, view: &mut View) -> Result<Gate, Stop> {
    let gate = view.kept(&Key::Gate(name.clone()), Row::into_gate)?;
    Ok(gate.unwrap_or(Gate {
        passed: Seq::Given(0),
        // By now it is full.
        budget: 0,
        budget_at: Timestamp(0),
        due_at: NEVER,
        is_full: false,
        swept: 0,
        recent: Default::default(),
    }))
}

pub(super) fn put_room(name: &Name, room: Room, view: &mut View) -> Result<(), Stop> {
    view.set_uncounted(Key::Room(name.clone()), Some(Row::Room(room)))
}

pub(super) fn put_gate(name: &Name, gate: Gate, view: &mut View) -> Result<(), Stop> {
    view.set_uncounted(Key::Gate(name.clone()), Some(Row::Gate(gate)))
}

pub(super) fn ticket_key(room: &Name, seq: Seq) -> Key {
    Key::Ticket(TicketKey { room: room.clone(), seq })
}

/// What a token of a subject stands for; without one, its last ticket.
pub(super) fn entry_key(room: &Name, subject: &SubjectId, token: &str) -> Key {
    Key::Entry(EntryKey { room: room.clone(), subject: subject.clone(), token: token.to_owned() })
}

pub(super) fn ticket(room: &Name, seq: Seq, view: &mut View) -> Result<Option<Ticket>, Stop> {
    view.kept_counted(&ticket_key(room, seq), Row::into_ticket)
}

/// The ticket that its holder calls this.
pub(super) fn held(name: &Name, room: &Room, called: &str, view: &mut View) -> Result<(Seq, Ticket), Stop> {
    let lost = || Refusal::TicketNotFound;
    let seq = Seq::Given(seal::open(&room.secret, called).ok_or_else(lost)?);
    let ticket = ticket(name, seq, view)?.ok_or_else(lost)?;
    Ok((seq, ticket))
}

/// What a ticket is by now, whoever has or has not looked at it since.
pub(super) fn now_is(ticket: &Ticket, now: Timestamp) -> TicketState {
    match ticket.state {
        state if state.is_over() => state,
        _ if ticket.due_at <= now => TicketState::Expired,
        state => state,
    }
}

/// The same, as it is told: nobody waits before the doors are open, and while they open it is not known yet who is before whom.
pub(super) fn shown(room: &Room, ticket: &Ticket, now: Timestamp) -> TicketState {
    match now_is(ticket, now) {
        TicketState::Waiting if matches!(room.phase, Phase::Before | Phase::Opening) => TicketState::BeforeOpen,
        state => state,
    }
}

/// The point at which a ticket stands while it waits.
pub(super) fn standing(name: &Name, seq: Seq, ticket: &Ticket) -> Option<Standing> {
    let place = ticket.stands(&TicketKey { room: name.clone(), seq })?;
    Some(Standing::at(OrderKey::Queue(name.clone()), place))
}

/// A ticket, as it is answered. The gate is only looked at, for the estimate.
pub(super) fn answer(
    name: &Name,
    room: &Room,
    seq: Seq,
    ticket: &Ticket,
    context: &Context<'_>,
    view: &mut View,
) -> Result<TicketReply, Stop> {
    let waits = shown(room, ticket, context.now()) == TicketState::Waiting;
    let ahead = standing(name, seq, ticket).filter(|_| waits).map(|standing| view.before(&standing));
    let gate = view.peek(&Key::Gate(name.clone()))?.and_then(Row::into_gate);
    let version = view.total(&RoomCount::Version.of(name))?;
    let figures = Figures { name, room, gate: gate.as_ref(), version, now: context.now() };
    Ok(TicketReply::new(&figures, seq, ticket, ahead))
}

/// Takes a ticket to another state, with all that is counted of it.
pub(super) fn turn(
    name: &Name,
    room: &Room,
    (seq, ticket): (Seq, &Ticket),
    to: TicketState,
    now: Timestamp,
    view: &mut View,
) -> Result<Ticket, Stop> {
    let settings = &room.settings;
    let mut after = Ticket { state: to, since: now, ..ticket.clone() };
    after.due_at = now.plus_ms(match to {
        TicketState::Ready => settings.claim_ttl_ms,
        TicketState::Admitted => settings.admission_ttl_ms,
        TicketState::BeforeOpen | TicketState::Waiting => settings.idle_ttl_ms,
        TicketState::Done | TicketState::Left | TicketState::Expired => settings.dedupe_ttl_ms,
    });
    let moved = |is: fn(TicketState) -> bool| i64::from(is(to)) - i64::from(is(ticket.state));
    for (count, by) in [
        (RoomCount::Inside, moved(TicketState::is_inside)),
        (RoomCount::Ready, moved(|state| state == TicketState::Ready)),
        (RoomCount::Admitted, i64::from(to.is_inside() && !ticket.state.is_inside())),
        (RoomCount::Left, i64::from(to == TicketState::Left)),
        (RoomCount::Expired, i64::from(to == TicketState::Expired && ticket.state != TicketState::Admitted)),
    ] {
        if by != 0 {
            view.add(&count.of(name), by)?;
        }
    }
    view.set(ticket_key(name, seq), Some(Row::Ticket(after.clone())))?;
    Ok(after)
}

/// Notes places that were given up before it was their turn, and that positions have fallen.
pub(super) fn note_gone(name: &Name, places: Vec<u64>, now: Timestamp, view: &mut View) -> Result<(), Stop> {
    if places.is_empty() {
        return Ok(());
    }
    view.add(&RoomCount::Version.of(name), 1)?;
    let number = view.take_number(&log(name));
    let key = Key::Gone(GoneKey { room: name.clone(), number });
    view.set_uncounted(key, Some(Row::Gone(Gone { places, due_at: now.plus_ms(GONE_TTL_MS) })))
}

/// The place of a ticket in the queue, where it stands in it and is known.
pub(super) fn place_of(room: &Room, seq: Seq, ticket: &Ticket) -> Option<u64> {
    match seq {
        Seq::Given(number) if ticket.state == TicketState::Waiting => Some(room.place(number)),
        Seq::Given(_) | Seq::Taken(_) => None,
    }
}

/// Somebody inside has finished: a gate that waits for that looks again.
pub(super) fn make_place(name: &Name, now: Timestamp, view: &mut View) -> Result<(), Stop> {
    let gate = gate(name, view)?;
    if gate.is_full {
        put_gate(name, Gate { is_full: false, due_at: now.max(Timestamp(1)), ..gate }, view)?;
    }
    Ok(())
}
