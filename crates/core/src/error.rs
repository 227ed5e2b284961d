//! Why a command was refused, with the stable code that a client sees.

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::id::{Name, ObjectId, SubjectId};

/// A refusal: a definite no, with nothing written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// The request itself is wrong.
    #[error("{0}")]
    BadRequest(String),
    /// A cursor that is broken or belongs to another list.
    #[error("this cursor is broken or belongs to another list; start again without one")]
    BadCursor,
    /// Something that the caller named does not exist.
    #[error("{0}")]
    NotFound(String),
    /// A relation that is not declared.
    #[error("there is no relation `{name}`{}", hint("relations", .near))]
    RelationNotFound {
        /// What was asked for.
        name: Name,
        /// A declared name that is spelled nearly the same.
        near: Option<Name>,
    },
    /// Something else that is not declared.
    #[error("there is no {} `{name}`{}", .what.word(), hint(.what.table(), .near))]
    NotDeclared {
        /// What it would be.
        what: Declared,
        /// What was asked for.
        name: Name,
        /// A declared name that is spelled nearly the same.
        near: Option<Name>,
    },
    /// A room that is not there: rooms are made as often as they are declared.
    #[error(
        "there is no room `{0}`; make it with PUT /v1/rooms/{0}, or declare it in the configuration as [rooms.{0}]"
    )]
    RoomNotFound(Name),
    /// The relation wants a registered object, and this one is not.
    #[error("the object `{0}` is not registered")]
    ObjectNotFound(ObjectId),
    /// The caller may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The subject is suspended.
    #[error("the subject `{0}` is suspended")]
    Suspended(SubjectId),
    /// A configured condition said no, or erred. Its text is for the log alone.
    #[error("a condition that is configured for this does not hold")]
    ConditionFailed(String),
    /// The edge is there with another `meta`.
    #[error("this edge exists with another meta; unrelate it first, or declare the relation with mutable_meta = true")]
    Immutable,
    /// The subject has as many edges as the relation lets it have.
    #[error("`{relation}` allows {limit} per subject")]
    LimitExceeded {
        /// The relation.
        relation: Name,
        /// Its limit.
        limit: u32,
    },
    /// A limit is used up for now.
    #[error("`{}` allows {} in {} ms; try again in {} ms", .0.limit, .0.amount, .0.window_ms, .0.retry_after_ms)]
    RateLimited(Box<Exhausted>),
    /// The state is not one in which this can be done.
    #[error("{0}")]
    Conflict(String),
    /// There is no such ticket.
    #[error("there is no such ticket in this room")]
    TicketNotFound,
    /// The ticket is over.
    #[error("{0}")]
    TicketGone(String),
    /// It is not the ticket's turn.
    #[error("{0}")]
    NotReady(String),
    /// Nobody joins the room.
    #[error("{0}")]
    RoomClosed(String),
    /// Nobody knows who asks.
    #[error("this needs a credential: send Authorization: Bearer with an API key or a user's token")]
    SignIn,
    /// One command of an atomic batch was refused, so none took effect.
    #[error("command {index} was refused, so none of the batch took effect: {cause}")]
    BatchRefused {
        /// Its place in the batch, from 0.
        index: usize,
        /// Why that command was refused.
        cause: Box<Refusal>,
    },
    /// More than a limit allows.
    #[error("{0}")]
    TooLarge(String),
    /// The same idempotency key with another request.
    #[error("this Idempotency-Key was used for another request: {field} differs")]
    IdempotencyKeyReused {
        /// The first field that differs.
        field: String,
    },
    /// A defect: the rules met a state that they hold impossible. Loud, and nothing is written.
    #[error("an internal check failed: {0}")]
    Broken(String),
}

pub use crate::catalog::Declared;

/// A limit that has no room for a call, and when it will.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Exhausted {
    /// The limit.
    pub limit: String,
    /// How much it allows.
    pub amount: u64,
    /// In how many milliseconds.
    pub window_ms: u64,
    /// How much is left.
    pub remaining: u64,
    /// In how many milliseconds all of it is there again.
    pub reset_ms: u64,
    /// In how many milliseconds this call would pass.
    pub retry_after_ms: u64,
}

fn hint(table: &str, near: &Option<Name>) -> String {
    near.as_ref().map_or_else(
        || format!("; declare it in the configuration as [{table}.NAME]"),
        |name| format!("; did you mean `{name}`?"),
    )
}

impl Refusal {
    /// A wrong request, in words.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::BadRequest(detail.into())
    }

    /// The stable code of the HTTP contract.
    pub fn code(&self) -> Code {
        match self {
            Self::BadRequest(_) => Code::BadRequest,
            Self::BadCursor => Code::BadCursor,
            Self::NotFound(_) => Code::NotFound,
            Self::RelationNotFound { .. } => Code::RelationNotFound,
            Self::NotDeclared { what, .. } => what.code(),
            Self::RoomNotFound(_) => Code::RoomNotFound,
            Self::ObjectNotFound(_) => Code::ObjectNotFound,
            Self::RateLimited(_) => Code::RateLimited,
            Self::Forbidden(_) | Self::Suspended(_) => Code::Forbidden,
            Self::ConditionFailed(_) => Code::ConditionFailed,
            Self::Immutable => Code::Immutable,
            Self::LimitExceeded { .. } => Code::LimitExceeded,
            Self::Conflict(_) => Code::Conflict,
            Self::TicketNotFound => Code::TicketNotFound,
            Self::TicketGone(_) => Code::TicketGone,
            Self::NotReady(_) => Code::NotReady,
            Self::RoomClosed(_) => Code::RoomClosed,
            Self::SignIn => Code::Unauthenticated,
            Self::BatchRefused { .. } => Code::BatchRefused,
            Self::TooLarge(_) => Code::TooLarge,
            Self::IdempotencyKeyReused { .. } => Code::IdempotencyKeyReused,
            Self::Broken(_) => Code::Internal,
        }
    }
}
