//! A room from its making to its end: set up, opened, deleted.

use std::sync::Arc;

use super::gate::{budget_max, refill};
use super::reply::RoomReply;
use super::rows::{Gate, NEVER, Phase, RoomCount, queue};
use super::rule::{gate, note_gone, put_gate, put_room, room, ticket, ticket_key};
use super::{DeleteRoom, PutRoom, RoomSettings, expire};
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::Name;
use crate::reply::Done;
use crate::rows::{Key, Room, Row, Seq, SequenceKey, Ticket, TicketState};
use crate::time::Timestamp;
use crate::view::{Stop, View};

/// Tickets that one step of opening or of deleting takes.
const STEP: u64 = 500;

/// Makes a room, or changes how it is set up.
pub(super) fn put(command: &PutRoom, context: &Context<'_>, view: &mut View) -> Result<RoomReply, Stop> {
    let PutRoom { room: name, settings, fresh, declared } = command;
    settings.check(name)?;
    let numbers = queue(name).key();
    view.want(&[Key::Room(name.clone()), Key::Gate(name.clone()), numbers.clone(), Key::Names], &[])?;
    let now = context.now();
    let Some(before) = view.kept(&Key::Room(name.clone()), Row::into_room)? else {
        return make(command, context, view);
    };
    if before.phase == Phase::Deleting {
        return Err(Refusal::Conflict(format!("the room `{name}` is being deleted; try again shortly")).into());
    }
    let settings = &Arc::new(settings.clone());
    let said = declared.then(|| settings.clone());
    if *declared && before.declared == said {
        return Ok(RoomReply::new(name, &before, false, false));
    }
    let mut after = Room { settings: settings.clone(), declared: said.or(before.declared.clone()), ..before.clone() };
    check_doors(&before, settings, now, SequenceKey::last(view.row_uncounted(&numbers)?.as_ref()))?;
    let changed = after.settings != before.settings;
    if changed {
        let mut gate = gate(name, view)?;
        // What is saved up by now was saved up at the old rate.
        refill(&mut gate, &before, now);
        match after.phase {
            Phase::Before => gate.due_at = settings.opens_at.unwrap_or(now).max(Timestamp(1)),
            Phase::Opening | Phase::Open | Phase::Deleting => {
                // The gate looks at once, and goes to sleep again if nobody waits.
                (gate.due_at, gate.is_full, after.awake) = (now, false, true);
            }
        }
        put_gate(name, gate, view)?;
    }
    let reply = RoomReply::new(name, &after, changed, false);
    put_room(name, after, view)?;
    let _ = fresh;
    Ok(reply)
}

fn make(command: &PutRoom, context: &Context<'_>, view: &mut View) -> Result<RoomReply, Stop> {
    let PutRoom { room: name, settings, fresh: [secret, seed], declared } = command;
    let (now, settings) = (context.now(), Arc::new(settings.clone()));
    // A room of this name may have been before: numbers go on.
    let last = SequenceKey::last(view.row_uncounted(&queue(name).key())?.as_ref());
    let opens = settings.opens_at.filter(|at| *at > now);
    let room = Room {
        settings: settings.clone(),
        declared: declared.then(|| settings.clone()),
        secret: secret.clone(),
        seed: seed.clone(),
        phase: if opens.is_some() { Phase::Before } else { Phase::Open },
        early: opens.is_none().then_some(0),
        awake: false,
        created_at: now,
    };
    let passed = if opens.is_some() && settings.is_shuffled() { 0 } else { last };
    let (budget, due_at) = (budget_max(&room), opens.unwrap_or(NEVER));
    let gate = Gate {
        passed: Seq::Given(passed),
        budget,
        budget_at: now,
        due_at,
        is_full: false,
        swept: 0,
        recent: Default::default(),
    };
    put_gate(name, gate, view)?;
    let mut names = view.kept(&Key::Names, Row::into_names)?.unwrap_or_default();
    if names.rooms.insert(name.clone()) {
        view.set_uncounted(Key::Names, Some(Row::Names(names)))?;
    }
    let reply = RoomReply::new(name, &room, true, true);
    put_room(name, room, view)?;
    Ok(reply)
}

/// What cannot be changed about the doors any more.
fn check_doors(before: &Room, after: &RoomSettings, now: Timestamp, last: u64) -> Result<(), Refusal> {
    let settings = &before.settings;
    let is_open = before.phase != Phase::Before;
    if is_open && after.opens_at != settings.opens_at && after.opens_at.is_some_and(|at| at > now) {
        return Err(Refusal::Conflict("the doors are open; they cannot open later".into()));
    }
    let came_early = if is_open { before.early.unwrap_or(0) } else { last };
    if after.before_open != settings.before_open && came_early > 0 {
        return Err(Refusal::Conflict("before_open cannot change once somebody has come early".into()));
    }
    Ok(())
}

/// Opens the doors: from here on it is known who came early.
pub(super) fn open(
    name: &Name,
    mut room: Room,
    mut gate: Gate,
    context: &Context<'_>,
    view: &mut View,
) -> Result<bool, Stop> {
    let now = context.now();
    if let Some(opens_at) = room.settings.opens_at.filter(|at| *at > now) {
        put_gate(name, Gate { due_at: opens_at, ..gate }, view)?;
        return Ok(true);
    }
    // Who stands in an order that is drawn is to be known exactly. Otherwise it does not matter, and a crowd that joins at this moment is
    // not in the way.
    let numbers = queue(name).key();
    let row = if room.settings.is_shuffled() { view.row_uncounted(&numbers)? } else { view.peek(&numbers)? };
    let last = SequenceKey::last(row.as_ref());
    room.early = Some(last);
    room.phase = if room.settings.is_shuffled() && last > 0 { Phase::Opening } else { Phase::Open };
    room.awake = true;
    (gate.swept, gate.due_at) = (0, now);
    view.add(&RoomCount::Version.of(name), 1)?;
    put_room(name, room, view)?;
    put_gate(name, gate, view)?;
    Ok(true)
}

/// Gives some of those who came early the places that were drawn for them.
pub(super) fn shuffle_step(
    name: &Name,
    mut room: Room,
    mut gate: Gate,
    context: &Context<'_>,
    view: &mut View,
) -> Result<bool, Stop> {
    let (now, early) = (context.now(), room.early.unwrap_or(0));
    let seqs = gate.swept + 1..=early.min(gate.swept + STEP);
    let rows: Vec<Key> = seqs.clone().map(|seq| ticket_key(name, Seq::Given(seq))).collect();
    view.want(&rows, &[])?;
    let mut gone = Vec::new();
    for seq in seqs {
        let place = room.place(seq);
        match ticket(name, Seq::Given(seq), view)? {
            Some(ticket) if ticket.state == TicketState::BeforeOpen => {
                let after = Ticket { state: TicketState::Waiting, score: room.score(seq), ..ticket };
                view.set_uncounted(ticket_key(name, Seq::Given(seq)), Some(Row::Ticket(after)))?;
            }
            Some(_) | None => gone.push(place),
        }
        gate.swept = seq;
    }
    note_gone(name, gone, now, view)?;
    if gate.swept == early {
        room.phase = Phase::Open;
        gate.swept = 0;
        view.add(&RoomCount::Version.of(name), 1)?;
        put_room(name, room, view)?;
    }
    gate.due_at = now;
    put_gate(name, gate, view)?;
    Ok(true)
}

/// Closes a room for good. Its tickets are taken away in steps.
pub(super) fn delete(command: &DeleteRoom, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
    let name = &command.room;
    view.want(&[Key::Room(name.clone()), Key::Gate(name.clone())], &[])?;
    let room = room(name, view)?;
    let gate = gate(name, view)?;
    put_room(name, Room { phase: Phase::Deleting, awake: false, ..room }, view)?;
    put_gate(name, Gate { swept: 0, due_at: context.now().max(Timestamp(1)), ..gate }, view)?;
    // Whoever follows the room is to know.
    view.add(&RoomCount::Version.of(name), 1)?;
    Ok(Done { changed: true })
}

pub(super) fn delete_step(
    name: &Name,
    room: Room,
    mut gate: Gate,
    context: &Context<'_>,
    view: &mut View,
) -> Result<bool, Stop> {
    // Nobody joins any more, so this number stands.
    let last = SequenceKey::last(view.row_uncounted(&queue(name).key())?.as_ref());
    let seqs = gate.swept + 1..=last.min(gate.swept + STEP);
    let rows: Vec<Key> = seqs.clone().map(|seq| ticket_key(name, Seq::Given(seq))).collect();
    view.want(&rows, &[])?;
    let mut found = Vec::new();
    for seq in seqs {
        found.extend(ticket(name, Seq::Given(seq), view)?.map(|ticket| (Seq::Given(seq), ticket)));
        gate.swept = seq;
    }
    crate::subject::forget::each(
        found.iter().map(|(seq, ticket)| expire::remove(name, *seq, ticket, view).map(|()| true)),
    )?;
    if gate.swept < last {
        gate.due_at = context.now();
        put_gate(name, gate, view)?;
        return Ok(true);
    }
    let _ = room;
    let mut names = view.kept(&Key::Names, Row::into_names)?.unwrap_or_default();
    if names.rooms.remove(name) {
        view.set_uncounted(Key::Names, Some(Row::Names(names)))?;
    }
    view.set_uncounted(Key::Gate(name.clone()), None)?;
    view.set_uncounted(Key::Room(name.clone()), None)?;
    Ok(true)
}
