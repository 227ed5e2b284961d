//! The rows of waiting rooms.

use serde::{Deserialize, Serialize};

use crate::id::{Name, SubjectId};
use crate::rows::{InOrder, Kind, OrderKey, Ordered, Place, Seq, SequenceKey, columns, declare, kind, texts};
use crate::time::Timestamp;

/// The sequence that numbers a room's tickets.
pub(crate) const QUEUE: &str = "queue";

/// The sequence of a room's tickets.
pub fn queue(room: &Name) -> SequenceKey {
    SequenceKey { home: room.as_str().to_owned(), name: QUEUE.to_owned() }
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
    /// Where it stands while it waits.
    pub fn place(&self) -> Place {
        Place::of_number(self.seq)
    }
}

/// A place in a room's queue, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ticket {
    /// Whose it is.
    pub subject: SubjectId,
    /// What the subject calls it.
    pub token: String,
    /// How far it has come.
    pub state: TicketState,
    /// When it was taken.
    pub joined_at: Timestamp,
    /// Until when it is kept without a sign of life.
    pub alive_until: Timestamp,
}

/// How far a ticket has come. Only one that waits stands in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TicketState {
    /// Taken before the doors opened.
    BeforeOpen,
    /// In the queue.
    Waiting,
    /// Let in, and not claimed yet.
    Ready,
    /// Inside.
    Admitted,
    /// Was inside.
    Done,
    /// Given up by its subject.
    Left,
    /// Given up for its subject.
    Expired,
}

impl TicketState {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::BeforeOpen, Self::Waiting, Self::Ready, Self::Admitted, Self::Done, Self::Left, Self::Expired];

    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeOpen => "BEFORE_OPEN",
            Self::Waiting => "WAITING",
            Self::Ready => "READY",
            Self::Admitted => "ADMITTED",
            Self::Done => "DONE",
            Self::Left => "LEFT",
            Self::Expired => "EXPIRED",
        }
    }

    /// Reads it back.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// Names what a subject's token stands for in a room.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EntryKey {
    /// The room.
    pub room: Name,
    /// The subject.
    pub subject: SubjectId,
    /// As the subject calls it.
    pub token: String,
}

texts!(TicketState: Self::name, Self::from_name);
columns!(TicketKey { room, seq });
columns!(Ticket { subject, token, state, joined_at, alive_until });
columns!(EntryKey { room, subject, token });

impl Kind for kind::Ticket {
    declare!(Ticket = b'k' "ticket" in "room"
        ("room" Text, "seq" Number) =>
        ("subject" Text, "token" Text, "state" Text, "joined_at" Time, "alive_until" Time)
        Absent With(0),
        order Ordered { score: None, reached: "seq", only: Some(("state", "WAITING")) },
        numbered QUEUE);

    const ORDER: Option<InOrder<Self>> = Some(InOrder {
        order: |key| OrderKey::Queue(key.room.clone()),
        place: |key, ticket| (ticket.state == TicketState::Waiting).then(|| key.place()),
        row: None,
    });
}

impl Kind for kind::Entry {
    declare!(Entry = b'y' "entry" in "room"
        ("room" Text, "subject" Text, "token" Text) => ("seq" Number)
        Absent With(0), numbered QUEUE);
}
