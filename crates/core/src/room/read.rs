//! What can be asked about rooms.

use serde::{Deserialize, Serialize};

pub use super::holder::{HolderAnswer, HolderQuery};
pub use super::minutes::{MinuteItem, MinutesAnswer, MinutesQuery};
use super::pace::Pace;
use super::reply::Figures;
pub use super::reply::TicketReply;
use super::rows::{Phase, RoomCount, log, queue};
use super::rule::{Who, no_room, shown, ticket_key};
use super::{JoinBy, RoomSettings, seal, shuffle};
use crate::error::Refusal;
use crate::id::Name;
use crate::permission::Permission;
use crate::query::{Ask, Question, questions};
use crate::read::{Found, Halt, Sight};
use crate::rows::{
    Gate, Gone, GoneKey, Key, OrderKey, Place, Room, Row, Seq, SequenceKey, Standing, Ticket, TicketState,
};
use crate::time::Timestamp;
use crate::view::Wants;

/// What left a queue, in one question.
pub const GONE_MAX: u64 = 1_000;
/// How long a sign of life may be on its way.
const ON_ITS_WAY_MS: u64 = 1_000;

/// How is a ticket?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TicketQuery {
    /// The room.
    pub room: Name,
    /// The ticket, as its holder knows it.
    pub ticket: String,
}

/// How is a room?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoomQuery {
    /// The room.
    pub room: Name,
}

/// Which rooms are there?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoomsQuery;

/// What is a queue made of? For whoever answers for a room from memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueQuery {
    /// The room.
    pub room: Name,
    /// What left it is known up to this number of the room's log; none: only where the log is.
    pub gone_after: Option<u64>,
}

questions!(Room:
    Ticket(TicketQuery) -> TicketReply,
    Room(RoomQuery) -> RoomAnswer,
    Rooms(RoomsQuery) -> RoomsAnswer,
    Minutes(MinutesQuery) -> MinutesAnswer,
    Queue(QueueQuery) -> QueueAnswer,
    Holder(HolderQuery) -> HolderAnswer;
    with MinuteItem);

/// The room, unless it is gone.
pub(super) fn room_of(name: &Name, found: &Found) -> Result<Room, Refusal> {
    let room = found.rows.first().cloned().flatten().and_then(Row::into_room);
    room.filter(|room| room.phase != Phase::Deleting).ok_or_else(|| no_room(name))
}

fn gate_of(row: Option<&Option<Row>>) -> Option<Gate> {
    row.cloned().flatten().and_then(Row::into_gate)
}

impl Question for TicketQuery {
    type Answer = TicketReply;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::HoldTicket));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<TicketReply, Halt> {
        let name = &self.room;
        let first = sight.load(|| Wants::rows(vec![Key::Room(name.clone())]))?;
        let room = room_of(name, &first)?;
        let number = seal::open(&room.secret, &self.ticket).ok_or(Refusal::TicketNotFound)?;
        let seq = Seq::Given(number);
        let place = Place { score: room.score(number), ..Place::of_number(seq) };
        let found = sight.load(|| Wants {
            rows: vec![ticket_key(name, seq), Key::Gate(name.clone())],
            totals: vec![RoomCount::Version.of(name)],
            ranks: vec![Standing::at(OrderKey::Queue(name.clone()), place)],
        })?;
        let ticket = found.rows.first().cloned().flatten().and_then(Row::into_ticket).ok_or(Refusal::TicketNotFound)?;
        let gate = gate_of(found.rows.get(1));
        let now = not_yet_over(&ticket, found.now.time());
        let version = found.totals.first().copied().unwrap_or(0);
        let figures = Figures { name, room: &room, gate: gate.as_ref(), version, now };
        let stands = shown(&room, &ticket, now) == TicketState::Waiting;
        let ahead = found.ranks.first().copied().filter(|_| stands);
        Ok(TicketReply::new(&figures, seq, &ticket, ahead))
    }
}

/// A sign of life may be on its way that was given in time: whoever only looks does not call a ticket expired that may not be. It is
/// given up a moment later, or it goes on.
fn not_yet_over(ticket: &Ticket, now: Timestamp) -> Timestamp {
    let waits = matches!(ticket.state, TicketState::Waiting | TicketState::BeforeOpen);
    let is_close = ticket.due_at <= now && now.0 - ticket.due_at.0 < ON_ITS_WAY_MS;
    if waits && is_close { Timestamp(ticket.due_at.0 - 1) } else { now }
}

impl Question for RoomQuery {
    type Answer = RoomAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ReadRoom));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<RoomAnswer, Halt> {
        let (name, who) = (&self.room, Who::of(sight.auth));
        let found = sight.load(|| wants(name))?;
        let room = match (room_of(name, &found), &who) {
            (Ok(room), Who::Nobody) if room.settings.join != JoinBy::Any => return Err(Refusal::SignIn.into()),
            (Err(_), Who::Nobody) => return Err(Refusal::SignIn.into()),
            (room, Who::Nobody | Who::Server | Who::User(_)) => room?,
        };
        let mut answer = RoomAnswer::new(name, &room, &found);
        if who == Who::Nobody {
            // Who may pass, and how often, is nobody's business.
            (answer.settings.bypass, answer.settings.rate_limit) = (None, None);
        }
        Ok(answer)
    }
}

/// What the figures of a room are made of.
fn wants(name: &Name) -> Wants {
    Wants {
        rows: vec![Key::Room(name.clone()), Key::Gate(name.clone()), queue(name).key()],
        totals: vec![RoomCount::Inside.of(name), RoomCount::Ready.of(name), RoomCount::Version.of(name)],
        ranks: vec![Standing::end(OrderKey::Queue(name.clone()))],
    }
}

/// A room.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RoomAnswer {
    /// The room.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub room: Name,
    /// How many wait.
    pub waiting: u64,
    /// How many are let in and have not claimed it yet.
    pub ready: i64,
    /// How many are inside.
    pub admitted: i64,
    /// How many have ever joined.
    pub joined: u64,
    /// How often positions have fallen.
    pub version: i64,
    /// Whether the doors are open.
    pub open: bool,
    /// How long a newcomer would wait, as far as anybody can say.
    pub eta_ms: Option<u64>,
    /// SHA-256 of the seed that draws the order of who comes early.
    pub seed_hash: String,
    /// The seed itself, once the doors are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// How many came before the doors opened, once they are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<u64>,
    /// When it was made.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// As of when.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub as_of: Timestamp,
    /// How it is set up.
    #[serde(flatten)]
    pub settings: RoomSettings,
}

impl RoomAnswer {
    fn new(name: &Name, room: &Room, found: &Found) -> Self {
        let now = found.now.time();
        let gate = gate_of(found.rows.get(1));
        let total = |place: usize| found.totals.get(place).copied().unwrap_or(0);
        let waiting = found.ranks.first().copied().unwrap_or(0);
        let pace = Pace::of(room, gate.as_ref(), now);
        let is_empty = waiting == 0 && !gate.as_ref().is_some_and(|gate| gate.is_full);
        let is_open = room.phase == Phase::Open;
        let eta_ms = match is_empty && pace.rate.is_some() {
            true => Some(0),
            false => pace.estimate(waiting).map(|estimate| estimate.ms),
        };
        Self {
            room: name.clone(),
            waiting,
            ready: total(1),
            admitted: total(0) - total(1),
            joined: SequenceKey::last(found.rows.get(2).and_then(Option::as_ref)),
            version: total(2),
            open: is_open,
            eta_ms: eta_ms.filter(|_| is_open),
            seed_hash: shuffle::commitment(&room.seed),
            seed: (room.phase != Phase::Before && room.settings.is_shuffled()).then(|| room.seed.clone()),
            early: room.early.filter(|_| room.settings.is_shuffled()),
            created_at: room.created_at,
            as_of: now,
            settings: (*room.settings).clone(),
        }
    }
}

impl Question for RoomsQuery {
    type Answer = RoomsAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ManageRoom));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<RoomsAnswer, Halt> {
        let names = sight.row(|| Key::Names)?.and_then(Row::into_names).unwrap_or_default();
        let mut items = Vec::new();
        for name in &names.rooms {
            let found = sight.load(|| wants(name))?;
            items.extend(room_of(name, &found).ok().map(|room| RoomAnswer::new(name, &room, &found)));
        }
        Ok(RoomsAnswer { items })
    }
}

/// All rooms, by name.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RoomsAnswer {
    /// The rooms.
    pub items: Vec<RoomAnswer>,
}

impl Question for QueueQuery {
    type Answer = QueueAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::ManageRoom));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<QueueAnswer, Halt> {
        let name = &self.room;
        let found = sight.load(|| {
            let mut wants = wants(name);
            wants.ranks.clear();
            wants.rows.push(log(name).key());
            wants
        })?;
        let room = room_of(name, &found)?;
        let gone = SequenceKey::last(found.rows.get(3).and_then(Option::as_ref));
        let mut answer = QueueAnswer {
            gate: gate_of(found.rows.get(1)),
            last: SequenceKey::last(found.rows.get(2).and_then(Option::as_ref)),
            version: found.totals.get(2).copied().unwrap_or(0),
            gone_up_to: self.gone_after.unwrap_or(gone),
            gone_last: gone,
            gone: Some(Vec::new()),
            now: found.now.time(),
            room: Box::new(room),
        };
        let from = answer.gone_up_to + 1;
        let to = gone.min(answer.gone_up_to + GONE_MAX);
        if from <= to {
            let key = |number| Key::Gone(GoneKey { room: name.clone(), number: Seq::Given(number) });
            let found = sight.load_loosely(|| Wants::rows((from..=to).map(key).collect()))?;
            let rows = found.rows.iter().cloned().map(|row| row.and_then(Row::into_gone));
            answer.gone = rows
                .map(|row| row.map(|Gone { places, .. }| places))
                .collect::<Option<Vec<_>>>()
                .map(|all| all.concat());
            answer.gone_up_to = to;
        }
        Ok(answer)
    }
}

/// What a queue is made of: everybody behind the gate up to the last number, but for those who are gone.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct QueueAnswer {
    /// The room.
    pub room: Box<Room>,
    /// Its gate.
    pub gate: Option<Gate>,
    /// The last number that was given.
    pub last: u64,
    /// The room's version.
    pub version: i64,
    /// Up to where what left is told now, and up to where it goes.
    pub gone_up_to: u64,
    /// See `gone_up_to`.
    pub gone_last: u64,
    /// Places that were given up before it was their turn; nothing where some of it is not kept any more.
    pub gone: Option<Vec<u64>>,
    /// What time it was.
    pub now: Timestamp,
}
