//! The stable codes of problems, on which clients decide.

use std::fmt;

/// What sort of problem a code stands for: surfaces answer alike to all of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// The request itself is wrong.
    Wrong,
    /// Nobody knows who asks.
    Unknown,
    /// The caller may not.
    Forbidden,
    /// Something that was named is not there.
    Missing,
    /// It cannot be asked for in this way.
    Method,
    /// The state is not one in which this can be done.
    Conflict,
    /// It was there and is no more.
    Gone,
    /// More than a bound allows.
    TooLarge,
    /// It is written in another way than is read here.
    MediaType,
    /// A key that stands for another request.
    Reused,
    /// Too often.
    TooMany,
    /// Not now.
    Later,
    /// A defect.
    Broken,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal $class:ident $title:literal,)*) => {
        /// Why something was not done. What is not here is no code of the contract.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code {
            $($(#[$doc])* $code,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// As clients see it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }

            /// What sort of problem it is.
            pub fn class(self) -> Class {
                match self {
                    $(Self::$code => Class::$class,)*
                }
            }

            /// The same in a few words, for people.
            pub fn title(self) -> &'static str {
                match self {
                    $(Self::$code => $title,)*
                }
            }
        }
    };
}

codes! {
    /// The request itself is wrong.
    BadRequest = "bad_request" Wrong "The request is wrong",
    /// A cursor that is broken or belongs to another list.
    BadCursor = "bad_cursor" Wrong "The cursor is wrong",
    /// Nobody knows who asks.
    Unauthenticated = "unauthenticated" Unknown "Who are you?",
    /// The caller may not do this.
    Forbidden = "forbidden" Forbidden "Not allowed",
    /// A configured condition said no.
    ConditionFailed = "condition_failed" Forbidden "A condition does not hold",
    /// What was named does not exist.
    NotFound = "not_found" Missing "Not found",
    /// No such relation is declared.
    RelationNotFound = "relation_not_found" Missing "No such relation",
    /// No such counter is declared.
    CounterNotFound = "counter_not_found" Missing "No such counter",
    /// No such unique count is declared.
    UniqueNotFound = "unique_not_found" Missing "No such unique count",
    /// No such attendance sheet is declared.
    AttendanceNotFound = "attendance_not_found" Missing "No such attendance sheet",
    /// No such board is declared.
    BoardNotFound = "board_not_found" Missing "No such board",
    /// No such limit is declared.
    LimitNotFound = "limit_not_found" Missing "No such limit",
    /// No such room is there.
    RoomNotFound = "room_not_found" Missing "No such room",
    /// No such ticket is there.
    TicketNotFound = "ticket_not_found" Missing "No such ticket",
    /// The ticket is over.
    TicketGone = "ticket_gone" Gone "The ticket is over",
    /// It is not the ticket's turn.
    NotReady = "not_ready" Conflict "Not ready",
    /// Nobody joins the room.
    RoomClosed = "room_closed" Conflict "The room is closed",
    /// The object is not registered.
    ObjectNotFound = "object_not_found" Missing "No such object",
    /// The path has other methods.
    MethodNotAllowed = "method_not_allowed" Method "Method not allowed",
    /// The state is not one in which this can be done.
    Conflict = "conflict" Conflict "Conflict",
    /// The edge is there with another `meta`.
    Immutable = "immutable" Conflict "Edges are immutable",
    /// The subject has as many as it may have.
    LimitExceeded = "limit_exceeded" Conflict "Limit exceeded",
    /// A command of an atomic batch was refused.
    BatchRefused = "batch_refused" Conflict "The batch was refused",
    /// More than a bound allows.
    TooLarge = "too_large" TooLarge "Too large",
    /// The body is not JSON.
    UnsupportedMediaType = "unsupported_media_type" MediaType "Unsupported media type",
    /// The key was used for another request.
    IdempotencyKeyReused = "idempotency_key_reused" Reused "Idempotency key reused",
    /// A limit is used up for now.
    RateLimited = "rate_limited" TooMany "Too many requests",
    /// Too much is waiting.
    Overloaded = "overloaded" Later "Overloaded",
    /// The store cannot do it now.
    StoreUnavailable = "store_unavailable" Later "The store is unavailable",
    /// A defect of the server.
    Internal = "internal" Broken "Internal error",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq<&str> for Code {
    fn eq(&self, name: &&str) -> bool {
        self.name() == *name
    }
}
