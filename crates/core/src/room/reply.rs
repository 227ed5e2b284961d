//! What is answered about a room and its tickets.

use serde::{Deserialize, Serialize};

use super::pace::{Pace, poll_after_ms};
use super::rows::{Gate, Room, RoomCount, Ticket, TicketState, queue};
use super::{RoomSettings, seal, shuffle};
use crate::id::{Name, SubjectId};
use crate::reply::{Answered, NamesMut, Told};
use crate::rows::Seq;
use crate::time::Timestamp;

/// A ticket, as it is now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TicketReply {
    /// The room.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub room: Name,
    /// What the ticket is called. Whoever knows it holds it.
    pub ticket: String,
    /// Whose it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub subject: SubjectId,
    /// Its number. Lower ones came before.
    pub seq: u64,
    /// How far it has come.
    pub state: TicketState,
    /// Its place in the queue, from 1; nothing unless it waits.
    pub position: Option<u64>,
    /// How many wait before it; nothing unless it waits.
    pub ahead: Option<u64>,
    /// The room's version, as of which this holds.
    pub version: i64,
    /// How long it still waits, as far as anybody can say.
    pub eta_ms: Option<u64>,
    /// Hardly less, and hardly more.
    pub eta_range_ms: Option<[u64; 2]>,
    /// When to ask again.
    pub poll_after_ms: u64,
    /// When it was taken.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub joined_at: Timestamp,
    /// Until when it is to be claimed, where it is READY.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_by: Option<Timestamp>,
    /// What else is known of it, for whoever goes on with it.
    #[serde(skip)]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub facts: Box<Facts>,
}

/// What is not told of a ticket, and needed to tell the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Whether it was taken just now.
    pub is_new: bool,
    /// Whether it is to be let in out of turn: see [`super::Usher`].
    pub goes_straight_in: bool,
    /// Its number, as far as it is known.
    pub seq: Seq,
    /// With what tickets of the room are sealed.
    pub secret: String,
    /// How fast the queue moves.
    pub pace: Pace,
    /// What time it was.
    pub now: Timestamp,
    /// Since when it is in its state, and when that ends by itself.
    pub since: Timestamp,
    /// See `since`.
    pub until: Timestamp,
}

impl Default for Facts {
    fn default() -> Self {
        let (now, pace) = (Timestamp(0), Pace::default());
        let seq = Seq::Given(0);
        Self { is_new: false, goes_straight_in: false, seq, secret: String::new(), pace, now, since: now, until: now }
    }
}

/// The figures of a room that an answer about a ticket needs.
pub(crate) struct Figures<'a> {
    pub(crate) name: &'a Name,
    pub(crate) room: &'a Room,
    pub(crate) gate: Option<&'a Gate>,
    pub(crate) version: i64,
    pub(crate) now: Timestamp,
}

impl TicketReply {
    /// A ticket with how many wait before it, if it waits.
    pub(crate) fn new(figures: &Figures<'_>, seq: Seq, ticket: &Ticket, ahead: Option<u64>) -> Self {
        let Figures { name, room, gate, version, now } = *figures;
        let state = super::rule::shown(room, ticket, now);
        let facts = Facts {
            seq,
            secret: room.secret.clone(),
            pace: Pace::of(room, gate, now),
            now,
            since: ticket.since,
            until: ticket.due_at,
            ..Facts::default()
        };
        let mut reply = Self {
            room: name.clone(),
            ticket: String::new(),
            subject: ticket.subject.clone(),
            seq: 0,
            state,
            position: None,
            ahead,
            version,
            eta_ms: None,
            eta_range_ms: None,
            poll_after_ms: 0,
            joined_at: ticket.joined_at,
            claim_by: (state == TicketState::Ready).then_some(ticket.due_at),
            facts: Box::new(facts),
        };
        reply.finish(0);
        reply
    }

    /// Works out what follows from the number and the position, where the first number that the commit took is this.
    fn finish(&mut self, first: u64) {
        self.seq = self.facts.seq.given(first);
        self.ticket = seal::seal(&self.facts.secret, self.seq);
        self.position = self.ahead.map(|ahead| ahead.wrapping_add(1));
        let estimate = self.ahead.and_then(|ahead| self.facts.pace.estimate(ahead));
        self.eta_ms = estimate.map(|estimate| estimate.ms);
        self.eta_range_ms = estimate.map(|estimate| estimate.range_ms);
        self.poll_after_ms = poll_after_ms(self.ahead, self.seq, self.facts.now);
    }

    /// The same with another number of people before it, as of a later version.
    pub fn moved(mut self, ahead: Option<u64>, version: i64) -> Self {
        (self.ahead, self.version) = (ahead, version);
        self.finish(0);
        self
    }

    /// The id of its admission.
    pub fn jti(&self) -> String {
        seal::jti(&self.facts.secret, self.seq)
    }
}

impl Answered for TicketReply {
    fn correct(&mut self, told: &mut Told<'_>) {
        if let Some(ahead) = &mut self.ahead {
            *ahead = ahead.wrapping_add(told.ranks.next().unwrap_or(0));
        }
        self.version += (told.off)(&RoomCount::Version.of(&self.room));
        let first = (told.first)(&queue(&self.room));
        self.finish(first);
        self.facts.seq = Seq::Given(self.seq);
    }

    fn names_mut(&mut self) -> NamesMut<'_> {
        NamesMut { subject: Some(&mut self.subject), ..NamesMut::default() }
    }
}

/// A room, after it was made or changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RoomReply {
    /// The room.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub room: Name,
    /// Whether this write altered anything.
    pub changed: bool,
    /// Whether it made the room.
    pub created: bool,
    /// How it is set up.
    pub settings: RoomSettings,
    /// SHA-256 of the seed that draws the order of who comes early.
    pub seed_hash: String,
}

impl RoomReply {
    pub(super) fn new(name: &Name, room: &Room, changed: bool, created: bool) -> Self {
        let seed_hash = shuffle::commitment(&room.seed);
        Self { room: name.clone(), changed, created, settings: (*room.settings).clone(), seed_hash }
    }
}

/// Who was let in by hand.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AdmitReply {
    /// The room.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub room: Name,
    /// How many were let in.
    pub admitted: u64,
    /// How many are inside now.
    pub inside: i64,
    /// How many more could be.
    pub capacity_left: u64,
}

/// Answers without counts that the commit could move.
macro_rules! as_they_are {
    ($($reply:ty),+) => {
        $(impl Answered for $reply {
            fn correct(&mut self, _told: &mut Told<'_>) {}

            fn names_mut(&mut self) -> NamesMut<'_> {
                NamesMut::default()
            }
        })+
    };
}
as_they_are!(RoomReply, AdmitReply);
