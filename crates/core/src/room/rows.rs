//! The rows of waiting rooms.
//!
//! A join writes its own ticket and what its subject's token stands for, and nothing that another join writes: so joins of many
//! servers never meet. What letting in needs is in a row of its own, the [`Gate`], which one server at a time works on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::def::RoomSettings;
use super::shuffle;
pub use super::state::TicketState;
use crate::id::{Name, SubjectId};
use crate::rows::{Place, Seq, SequenceKey, TotalKey};
use crate::time::Timestamp;

/// The sequence that numbers a room's tickets.
pub(crate) const QUEUE: &str = "queue";
/// The sequence that numbers what left a room's queue out of order.
pub(crate) const LOG: &str = "log";

/// The sequence of a room's tickets.
pub fn queue(room: &Name) -> SequenceKey {
    SequenceKey { home: room.as_str().to_owned(), name: QUEUE.to_owned() }
}

/// The sequence of a room's [`Gone`].
pub fn log(room: &Name) -> SequenceKey {
    SequenceKey { home: room.as_str().to_owned(), name: LOG.to_owned() }
}

/// A time that does not come: the year 9999. Not its last day, which cannot be read back everywhere.
pub const NEVER: Timestamp = Timestamp(253_370_764_800_000);

/// What is counted of a room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoomCount {
    /// Tickets that are READY or ADMITTED: what takes up capacity.
    Inside,
    /// Those of them that are READY.
    Ready,
    /// How often positions have fallen. A position that is told with a version is never told higher with a later one.
    Version,
    /// Everybody who was ever let in.
    Admitted,
    /// Everybody who ever left.
    Left,
    /// Everybody who was ever given up before they were inside.
    Expired,
}

impl RoomCount {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Inside, Self::Ready, Self::Version, Self::Admitted, Self::Left, Self::Expired];

    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Ready => "ready",
            Self::Version => "version",
            Self::Admitted => "admitted",
            Self::Left => "left",
            Self::Expired => "expired",
        }
    }

    /// Reads it back.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|count| count.name() == name)
    }

    /// The total of a room.
    pub fn of(self, room: &Name) -> TotalKey {
        TotalKey::Room { room: room.clone(), count: self }
    }
}

/// How far a room's doors are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Phase {
    /// Closed still.
    Before,
    /// Open, and who came early is being put in a random order.
    Opening,
    /// Open.
    Open,
    /// Gone for everybody; its tickets are being taken away.
    Deleting,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Before, Self::Opening, Self::Open, Self::Deleting];

    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "BEFORE",
            Self::Opening => "OPENING",
            Self::Open => "OPEN",
            Self::Deleting => "DELETING",
        }
    }

    /// Reads it back.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

/// A room, as far as it seldom changes: every join stands on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Room {
    /// How it was set up.
    pub settings: Arc<RoomSettings>,
    /// What the configuration last said, where it declares the room.
    pub declared: Option<Arc<RoomSettings>>,
    /// With what tickets are sealed.
    pub secret: String,
    /// With what the order of who came early is drawn.
    pub seed: String,
    /// How far its doors are.
    pub phase: Phase,
    /// The last ticket of those who came before the doors opened, from then on.
    pub early: Option<u64>,
    /// Whether somebody may be waiting, so that the gate is due. A join into a room that is not awake looks at the gate itself.
    pub awake: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Room {
    /// Where a ticket stands in the queue.
    pub fn place(&self, seq: u64) -> u64 {
        match self.early {
            Some(early) if self.settings.is_shuffled() && seq <= early => shuffle::place(&self.seed, early, seq),
            Some(_) | None => seq,
        }
    }

    /// What is drawn for a ticket: see [`Ticket::score`].
    pub fn score(&self, seq: u64) -> i64 {
        match self.early {
            Some(early) if self.settings.is_shuffled() && seq <= early => (early + 1 - self.place(seq)).cast_signed(),
            Some(_) | None => 0,
        }
    }

    /// The ticket that stands there.
    pub fn at_place(&self, place: u64) -> u64 {
        match self.early {
            Some(early) if self.settings.is_shuffled() && place <= early => shuffle::seq(&self.seed, early, place),
            Some(_) | None => place,
        }
    }
}

/// What letting in goes by. One server at a time changes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gate {
    /// Everybody up to this place has been let in or is gone.
    pub passed: Seq,
    /// How many may be let in, in millionths, as of `budget_at`.
    pub budget: u64,
    /// When the budget was that.
    pub budget_at: Timestamp,
    /// When there is something to do; [`NEVER`] while there is not.
    pub due_at: Timestamp,
    /// Whether it waits for somebody inside to finish.
    pub is_full: bool,
    /// How far a long piece of work has come: opening a shuffled room, or deleting one.
    pub swept: u64,
    /// What it has done lately.
    pub recent: Box<Recent>,
}

/// What a gate has done lately: for estimates, and for the room's minutes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Recent {
    /// How many were let in, in steps of ten seconds: which of those since 1970, and how many. The newest last.
    #[serde(default)]
    pub let_in: Vec<(u64, u64)>,
    /// The minute that is being counted.
    #[serde(default)]
    pub minute: u64,
    /// What had been counted when it began: joined, admitted, left, expired.
    #[serde(default)]
    pub since: [u64; 4],
    /// The longest wait of those who were let in during it.
    #[serde(default)]
    pub longest_wait_ms: u64,
}

/// Names a ticket by its number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TicketKey {
    /// The room.
    pub room: Name,
    /// The ticket's number, of the room's [`queue`]: who has a lower one came before.
    pub seq: Seq,
}

impl TicketKey {
    /// Where it stands while it waits, unless its place was drawn.
    pub fn place(&self) -> Place {
        Place::of_number(self.seq)
    }
}

/// A place in a room's queue, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ticket {
    /// Whose it is.
    pub subject: SubjectId,
    /// What the subject calls it; empty where it has no name.
    pub token: String,
    /// How far it has come.
    pub state: TicketState,
    /// What was drawn for it, where it came early and the order is drawn: higher ones stand first. Otherwise 0: all these stand behind,
    /// by their numbers.
    pub score: i64,
    /// When it was taken.
    pub joined_at: Timestamp,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// When this state ends by itself.
    pub due_at: Timestamp,
    /// The ticket that its subject took before.
    pub previous: Option<Seq>,
}

impl Ticket {
    /// One that was just taken.
    pub fn new(subject: SubjectId, token: &str, state: TicketState, at: Timestamp, due_at: Timestamp) -> Self {
        let token = token.to_owned();
        Self { subject, token, state, score: 0, joined_at: at, since: at, due_at, previous: None }
    }

    /// Where it stands while it waits.
    pub fn stands(&self, key: &TicketKey) -> Option<Place> {
        let waits = self.state == TicketState::Waiting;
        waits.then(|| Place { score: self.score, ..key.place() })
    }
}

/// Names what a subject's token stands for in a room.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EntryKey {
    /// The room.
    pub room: Name,
    /// The subject.
    pub subject: SubjectId,
    /// As the subject calls it. Empty: the last ticket that the subject took, whatever it is called.
    pub token: String,
}

/// Names what left a room's queue out of order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct GoneKey {
    /// The room.
    pub room: Name,
    /// Its number, of the room's [`log`].
    pub number: Seq,
}

/// Places in a room's queue that were given up before it was their turn. With these, with how far the gate is and with the last
/// number that was given, a server knows who waits without asking.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gone {
    /// The places.
    pub places: Vec<u64>,
    /// How long it is kept. Who is further behind begins anew.
    pub due_at: Timestamp,
}

/// Names a minute of a room.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct MinuteKey {
    /// The room.
    pub room: Name,
    /// When it began.
    pub minute: Timestamp,
}

/// A minute of a room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Minute {
    /// How many joined.
    pub joined: u64,
    /// How many were let in.
    pub admitted: u64,
    /// How many left.
    pub left: u64,
    /// How many were given up.
    pub expired: u64,
    /// The longest wait of those who were let in.
    pub longest_wait_ms: u64,
    /// How long it is kept.
    pub due_at: Timestamp,
}
