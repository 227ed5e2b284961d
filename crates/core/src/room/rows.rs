//! The rows of rooms: tickets.

use serde::{Deserialize, Serialize};

use crate::id::{Name, SubjectId};
use crate::rows::Place;
use crate::time::Timestamp;

/// Names a ticket.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TicketKey {
    /// The room.
    pub room: Name,
    /// Its number there: who has a lower one came before.
    pub seq: u64,
}

impl TicketKey {
    /// Where it stands while it waits.
    pub fn place(&self) -> Place {
        Place { score: 0, reached: self.seq, id: self.seq.to_string().into() }
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
