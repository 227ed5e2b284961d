//! The rows of waiting rooms.

use serde::{Deserialize, Serialize};

use crate::id::{Name, SubjectId};
use crate::rows::{Seq, SequenceKey};
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
    /// The ticket's number, of the room's [`queue`].
    pub seq: Seq,
}

/// A place in a room's queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// Whose it is.
    pub subject: SubjectId,
    /// Which of the subject's tickets it is, as the subject calls it.
    pub token: String,
    /// How far it has come.
    pub state: String,
    /// When it was taken.
    pub joined_at: Timestamp,
    /// Until when it stands without another word from its subject.
    pub alive_until: Timestamp,
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
