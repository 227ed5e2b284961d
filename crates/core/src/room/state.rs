//! How far a ticket has come.

use serde::{Deserialize, Serialize};

/// How far a ticket has come. Only one that waits stands in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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

    /// Whether it takes up capacity.
    pub fn is_inside(self) -> bool {
        match self {
            Self::Ready | Self::Admitted => true,
            Self::BeforeOpen | Self::Waiting | Self::Done | Self::Left | Self::Expired => false,
        }
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        match self {
            Self::Done | Self::Left | Self::Expired => true,
            Self::BeforeOpen | Self::Waiting | Self::Ready | Self::Admitted => false,
        }
    }
}
