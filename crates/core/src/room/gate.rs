//! Letting in: by rate and capacity, in the order of the queue.
//!
//! One server at a time works on a gate, because it is due; and whatever is done there is done in one commit. The queue is walked
//! by its dense numbers: whoever is next has the place behind the last one that passed.

use super::reply::{AdmitReply, TicketReply};
use super::rows::{Gate, NEVER, Phase, RoomCount, queue};
use super::rule::{answer, gate, note_gone, place_of, put_gate, put_room, room, ticket, ticket_key, turn};
use super::{ADMIT_MAX, Admit, LetIn, Mode, Usher, doors, pace};
use crate::decide::Context;
use crate::error::Refusal;
use crate::id::Name;
use crate::reply::Done;
use crate::rows::{Key, Minute, MinuteKey, Room, Row, Seq, SequenceKey, TicketState};
use crate::time::Timestamp;
use crate::view::{Stop, View};

/// One that may be let in, as budgets are counted.
pub(super) const ONE: u64 = 1_000_000;
/// How many are let in with one commit at most.
const STEP_MAX: u64 = 500;
/// How many places are looked at in one step at most.
const LOOK_MAX: u64 = 2_000;
/// A gate that lets many in does so in steps that are so far apart.
const TICK_MS: u64 = 50;
const MINUTE_MS: u64 = 60_000;
/// How long a minute is kept.
const MINUTE_TTL_MS: u64 = 7 * 24 * 60 * MINUTE_MS;

/// What was let in with a step.
struct Passed {
    count: u64,
    inside: i64,
    capacity_left: u64,
}

/// What is due at the gates of some rooms.
pub(super) fn let_in(command: &LetIn, context: &Context<'_>, view: &mut View) -> Result<Done, Stop> {
    let steps = command.rooms.iter().map(|name| step(name, context, view));
    Ok(Done { changed: crate::subject::forget::each(steps)? })
}

fn step(name: &Name, context: &Context<'_>, view: &mut View) -> Result<bool, Stop> {
    let key = Key::Gate(name.clone());
    view.want(&[Key::Room(name.clone()), key.clone()], &[RoomCount::Inside.of(name)])?;
    let Some(gate) = view.kept(&key, Row::into_gate)? else { return Ok(false) };
    if gate.due_at > context.now() {
        return Ok(false);
    }
    let Some(room) = view.kept(&Key::Room(name.clone()), Row::into_room)? else {
        view.set_uncounted(key, None)?;
        return Ok(true);
    };
    match room.phase {
        Phase::Before => doors::open(name, room, gate, context, view),
        Phase::Opening => doors::shuffle_step(name, room, gate, context, view),
        Phase::Open => pass(name, room, gate, None, context, view).map(|passed| passed.is_some()),
        Phase::Deleting => doors::delete_step(name, room, gate, context, view),
    }
}

/// Lets in whoever may be; by hand so many, whatever the rate. Nothing where another call of the same batch has to be committed
/// first.
fn pass(
    name: &Name,
    mut room: Room,
    mut gate: Gate,
    by_hand: Option<u32>,
    context: &Context<'_>,
    view: &mut View,
) -> Result<Option<Passed>, Stop> {
    let now = context.now();
    let Seq::Given(mut passed) = gate.passed else { return Ok(None) };
    let mut inside = view.total_decided(&RoomCount::Inside.of(name))?;
    refill(&mut gate, &room, now);
    let allowed = allowed(&room, &gate, inside, by_hand);
    let (mut count, mut looked, mut longest_wait_ms, mut is_end) = (0, 0, 0, false);
    let (mut fell, mut wanted, mut size) = (false, 0, allowed.clamp(1, STEP_MAX));
    loop {
        let next = passed + 1;
        if looked == wanted {
            // As many as may be let in, and ever more where there are none to let in: a decision that asks for them one by one is given up.
            let seqs = (next..next + size).map(|place| Seq::Given(room.at_place(place)));
            view.want(&seqs.map(|seq| ticket_key(name, seq)).collect::<Vec<_>>(), &[])?;
            wanted += size;
            size = (size * 4).min(STEP_MAX);
        }
        looked += 1;
        let seq = Seq::Given(room.at_place(next));
        match ticket(name, seq, view)? {
            None if next > last(name, view)? => {
                is_end = true;
                break;
            }
            Some(ticket) if ticket.state == TicketState::Waiting && ticket.due_at <= now => {
                // Nobody is behind it any more: it is given up here rather than a moment later.
                turn(name, &room, (seq, &ticket), TicketState::Expired, now, view)?;
                fell = true;
            }
            Some(_) | None if looked > LOOK_MAX => break,
            Some(ticket) if ticket.state == TicketState::Waiting => {
                if count == allowed {
                    break;
                }
                turn(name, &room, (seq, &ticket), TicketState::Ready, now, view)?;
                longest_wait_ms = longest_wait_ms.max(now.0.saturating_sub(ticket.joined_at.0));
                count += 1;
            }
            Some(_) | None => {}
        }
        passed = next;
    }
    inside += count.cast_signed();
    if by_hand.is_none() && room.settings.mode != Mode::Off {
        gate.budget = gate.budget.saturating_sub(count * ONE);
    }
    if count > 0 || fell {
        view.add(&RoomCount::Version.of(name), 1)?;
        count_let_in(&mut gate, count, longest_wait_ms, now);
    }
    keep_minute(name, &mut gate, now, view)?;
    let capacity_left = capacity_left(&room, inside);
    gate.passed = Seq::Given(passed);
    gate.is_full = !is_end && capacity_left == 0;
    gate.due_at = match is_end {
        true => NEVER,
        false if looked > LOOK_MAX || count == STEP_MAX => now,
        false => next_look(&gate, &room, now),
    };
    // Whoever joins while it sleeps wakes it; whoever has just decided that it is awake decides again.
    room.awake = !is_end;
    put_room(name, room, view)?;
    put_gate(name, gate, view)?;
    Ok(Some(Passed { count, inside, capacity_left }))
}

/// How many may be let in now.
fn allowed(room: &Room, gate: &Gate, inside: i64, by_hand: Option<u32>) -> u64 {
    let capacity = capacity_left(room, inside);
    let allowed = match (by_hand, room.settings.mode) {
        (Some(count), _) => u64::from(count).min(capacity),
        (None, Mode::Auto | Mode::Drain) => (gate.budget / ONE).min(capacity),
        (None, Mode::Off) => STEP_MAX,
        (None, Mode::Hold | Mode::Reject) => 0,
    };
    allowed.min(STEP_MAX)
}

/// The last number that was given.
fn last(name: &Name, view: &mut View) -> Result<u64, Stop> {
    let row = view.row_uncounted(&queue(name).key())?;
    Ok(SequenceKey::last(row.as_ref()))
}

/// How many more may be inside.
pub(super) fn capacity_left(room: &Room, inside: i64) -> u64 {
    room.settings.capacity.saturating_sub(inside.max(0).cast_unsigned())
}

/// What a budget is at most: that of one second, or one.
pub(super) fn budget_max(room: &Room) -> u64 {
    room.settings.rate_per_s.micros.max(ONE)
}

/// Brings the budget up to now: so many a second.
pub(super) fn refill(gate: &mut Gate, room: &Room, now: Timestamp) {
    let rate = room.settings.rate_per_s.micros;
    let since_ms = now.0.saturating_sub(gate.budget_at.0);
    let more = u128::from(rate) * u128::from(since_ms) / 1_000;
    let all = u128::from(gate.budget).saturating_add(more);
    gate.budget = u64::try_from(all).unwrap_or(u64::MAX).min(budget_max(room));
    gate.budget_at = now.max(gate.budget_at);
}

/// When somebody may be let in next; at the end of the minute at the latest, since minutes are kept.
pub(super) fn next_look(gate: &Gate, room: &Room, now: Timestamp) -> Timestamp {
    let minute = Timestamp((now.0 / MINUTE_MS + 1) * MINUTE_MS);
    let after_ms = match room.settings.mode {
        Mode::Hold | Mode::Reject => return minute,
        Mode::Off => TICK_MS,
        Mode::Auto | Mode::Drain if gate.is_full => return minute,
        Mode::Auto | Mode::Drain => {
            let missing = u128::from(ONE.saturating_sub(gate.budget)) * 1_000;
            let wait = missing.div_ceil(u128::from(room.settings.rate_per_s.micros));
            u64::try_from(wait).unwrap_or(u64::MAX).max(TICK_MS)
        }
    };
    now.plus_ms(after_ms).min(minute)
}

/// Takes note of who was let in, for estimates and for the minute.
pub(super) fn count_let_in(gate: &mut Gate, count: u64, longest_wait_ms: u64, now: Timestamp) {
    let step = now.0 / pace::STEP_MS;
    let recent = &mut gate.recent;
    recent.longest_wait_ms = recent.longest_wait_ms.max(longest_wait_ms);
    recent.let_in.retain(|(at, _)| at + pace::STEPS >= step);
    match recent.let_in.last_mut() {
        Some((at, counted)) if *at == step => *counted += count,
        Some(_) | None => recent.let_in.push((step, count)),
    }
}

/// Writes a minute down when it is over. What is counted meanwhile by others is in the next one.
pub(super) fn keep_minute(name: &Name, gate: &mut Gate, now: Timestamp, view: &mut View) -> Result<(), Stop> {
    let minute = now.0 / MINUTE_MS;
    if gate.recent.minute == minute {
        return Ok(());
    }
    let joined = view.peek(&queue(name).key())?;
    let mut counted = [SequenceKey::last(joined.as_ref()), 0, 0, 0];
    let totals = [RoomCount::Admitted, RoomCount::Left, RoomCount::Expired];
    for (place, count) in totals.into_iter().enumerate() {
        counted[place + 1] = view.peek_total(&count.of(name))?.max(0).cast_unsigned();
    }
    let recent = &mut gate.recent;
    let since = |place: usize| counted[place].saturating_sub(recent.since[place]);
    let due_at = now.plus_ms(MINUTE_TTL_MS);
    let longest_wait_ms = recent.longest_wait_ms;
    let (joined, admitted, left, expired) = (since(0), since(1), since(2), since(3));
    if recent.minute > 0 && joined + admitted + left + expired > 0 {
        let key = MinuteKey { room: name.clone(), minute: Timestamp(recent.minute * MINUTE_MS) };
        let row = Minute { joined, admitted, left, expired, longest_wait_ms, due_at };
        view.set_uncounted(Key::Minute(key), Some(Row::Minute(row)))?;
    }
    (recent.minute, recent.since, recent.longest_wait_ms) = (minute, counted, 0);
    Ok(())
}

/// Lets so many in by hand.
pub(super) fn admit(command: &Admit, context: &Context<'_>, view: &mut View) -> Result<AdmitReply, Stop> {
    let Admit { room: name, count } = command;
    if *count == 0 || *count > ADMIT_MAX {
        return Err(Refusal::bad_request(format!("count is between 1 and {ADMIT_MAX}")).into());
    }
    view.want(&[Key::Room(name.clone()), Key::Gate(name.clone())], &[RoomCount::Inside.of(name)])?;
    let room = room(name, view)?;
    let word = match room.settings.mode {
        Mode::Auto | Mode::Hold | Mode::Drain => None,
        Mode::Off => Some("off"),
        Mode::Reject => Some("reject"),
    };
    if let Some(mode) = word {
        return Err(Refusal::Conflict(format!("nobody is let in by hand while the mode is \"{mode}\"")).into());
    }
    let gate = gate(name, view)?;
    let passed = match room.phase {
        Phase::Opening => return Err(Refusal::Conflict("the doors are just opening; try again".into()).into()),
        Phase::Before if room.settings.is_shuffled() => {
            return Err(Refusal::Conflict("nobody stands in a queue before the doors open".into()).into());
        }
        Phase::Before | Phase::Open | Phase::Deleting => {
            let (is_before, was) = (room.phase == Phase::Before, gate.due_at);
            let passed = pass(name, room, gate, Some(*count), context, view)?;
            if is_before {
                // The doors still open when they were to.
                let gate = super::rule::gate(name, view)?;
                put_gate(name, Gate { due_at: was, ..gate }, view)?;
            }
            passed
        }
    };
    let Some(passed) = passed else {
        return Err(Refusal::Conflict("somebody went straight in at the same moment; try again".into()).into());
    };
    let Passed { count, inside, capacity_left } = passed;
    Ok(AdmitReply { room: name.clone(), admitted: count, inside, capacity_left })
}

/// Lets one in out of turn, within the capacity.
pub(super) fn usher(command: &Usher, context: &Context<'_>, view: &mut View) -> Result<TicketReply, Stop> {
    let (name, seq, now) = (&command.room, Seq::Given(command.seq), context.now());
    view.want(&[Key::Room(name.clone()), ticket_key(name, seq)], &[RoomCount::Inside.of(name)])?;
    let room = room(name, view)?;
    let mut ticket = ticket(name, seq, view)?.ok_or(Refusal::TicketNotFound)?;
    let waits = matches!(ticket.state, TicketState::Waiting | TicketState::BeforeOpen) && ticket.due_at > now;
    let inside = view.total_decided(&RoomCount::Inside.of(name))?;
    if waits && (room.settings.mode == Mode::Off || capacity_left(&room, inside) > 0) {
        let gone: Vec<u64> = place_of(&room, seq, &ticket).into_iter().collect();
        ticket = turn(name, &room, (seq, &ticket), TicketState::Ready, now, view)?;
        note_gone(name, gone, now, view)?;
    }
    answer(name, &room, seq, &ticket, context, view)
}
