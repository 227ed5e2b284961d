//! The stable codes of problems, on which clients decide.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal,)*) => {
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
        }
    };
}

codes! {
    /// The request itself is wrong.
    BadRequest = "bad_request",
    /// A cursor that is broken or belongs to another list.
    BadCursor = "bad_cursor",
    /// Nobody knows who asks.
    Unauthenticated = "unauthenticated",
    /// The caller may not do this.
    Forbidden = "forbidden",
    /// A configured condition said no.
    ConditionFailed = "condition_failed",
    /// What was named does not exist.
    NotFound = "not_found",
    /// No such relation is declared.
    RelationNotFound = "relation_not_found",
    /// No such counter is declared.
    CounterNotFound = "counter_not_found",
    /// No such unique count is declared.
    UniqueNotFound = "unique_not_found",
    /// No such attendance sheet is declared.
    AttendanceNotFound = "attendance_not_found",
    /// No such board is declared.
    BoardNotFound = "board_not_found",
    /// No such limit is declared.
    LimitNotFound = "limit_not_found",
    /// No such room is there.
    RoomNotFound = "room_not_found",
    /// No such ticket is there.
    TicketNotFound = "ticket_not_found",
    /// The ticket is over.
    TicketGone = "ticket_gone",
    /// It is not the ticket's turn.
    NotReady = "not_ready",
    /// Nobody joins the room.
    RoomClosed = "room_closed",
    /// The object is not registered.
    ObjectNotFound = "object_not_found",
    /// The path has other methods.
    MethodNotAllowed = "method_not_allowed",
    /// The state is not one in which this can be done.
    Conflict = "conflict",
    /// The edge is there with another `meta`.
    Immutable = "immutable",
    /// The subject has as many as it may have.
    LimitExceeded = "limit_exceeded",
    /// A command of an atomic batch was refused.
    BatchRefused = "batch_refused",
    /// More than a bound allows.
    TooLarge = "too_large",
    /// The body is not JSON.
    UnsupportedMediaType = "unsupported_media_type",
    /// The key was used for another request.
    IdempotencyKeyReused = "idempotency_key_reused",
    /// A limit is used up for now.
    RateLimited = "rate_limited",
    /// Too much is waiting.
    Overloaded = "overloaded",
    /// The store cannot do it now.
    StoreUnavailable = "store_unavailable",
    /// A defect of the server.
    Internal = "internal",
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
