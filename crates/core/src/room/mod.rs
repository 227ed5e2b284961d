//! The waiting room: everybody gets a ticket, sees an exact position, and is let in in order.

pub(crate) mod audit;
mod def;
mod doors;
mod expire;
mod forget;
mod gate;
pub mod holder;
mod join;
pub(crate) mod kinds;
mod minutes;
mod pace;
pub mod read;
mod reply;
pub mod rows;
mod rule;
pub mod seal;
pub mod shuffle;
mod state;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_end;
mod ticket;

use crate::decide::Context;
use crate::id::{Name, SubjectId};
use crate::operation::{About, Operation, operations};
use crate::permission::Permission;
use crate::reply::Done;
use crate::rows::{Key, TicketKey};
use crate::view::{Stop, View};

pub use audit::Fact;
pub use def::{BeforeOpen, JoinBy, Mode, Rate, RoomDef, RoomSettings};
pub use pace::{Estimate, Pace, poll_after_ms};
pub use read::{Answer, Query};
pub use reply::{AdmitReply, Facts, RoomReply, TicketReply};

/// Most that are let in by hand with one command.
pub const ADMIT_MAX: u32 = 500;
/// Most bytes of a token.
pub const TOKEN_BYTES_MAX: usize = 256;

/// Makes a room, or changes how it is set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutRoom {
    /// The room.
    pub room: Name,
    /// How it is set up from now on.
    pub settings: RoomSettings,
    /// Fresh secrets, for a room that is new: what seals its tickets, and what draws the order of who comes early.
    pub fresh: [String; 2],
    /// Whether it is the configuration that says so: then a change that was made since stays, until the configuration says
    /// something else.
    pub declared: bool,
}

/// Closes a room for good and forgets its tickets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteRoom {
    /// The room.
    pub room: Name,
}

/// Takes a ticket, or gives the one that there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Join {
    /// The room.
    pub room: Name,
    /// Who joins, where the caller says it.
    pub subject: Option<SubjectId>,
    /// What the caller calls the ticket: the same again is the same ticket.
    pub token: Option<String>,
    /// A fresh random text, for whoever has neither a name nor a token.
    pub fresh: String,
    /// From where, as far as it is known.
    pub ip: Option<String>,
}

/// Lets in one ticket out of turn, if it may be: see [`TicketReply::goes_straight_in`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Usher {
    /// The room.
    pub room: Name,
    /// The ticket.
    pub seq: u64,
}

/// Says that whoever holds a ticket is still there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beat {
    /// The room.
    pub room: Name,
    /// The ticket, as its holder knows it.
    pub ticket: String,
}

/// Goes in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The room.
    pub room: Name,
    /// The ticket, as its holder knows it.
    pub ticket: String,
}

/// Is done inside, and makes place for somebody else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finish {
    /// The room.
    pub room: Name,
    /// The ticket, as its holder knows it.
    pub ticket: String,
}

/// Gives a ticket up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leave {
    /// The room.
    pub room: Name,
    /// The ticket, as its holder knows it.
    pub ticket: String,
}

/// Lets so many in by hand, beyond the rate and within the capacity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admit {
    /// The room.
    pub room: Name,
    /// How many, at most [`ADMIT_MAX`].
    pub count: u32,
}

/// Lets in whoever may be by now, and whatever else is due at a room's gate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LetIn {
    /// The rooms.
    pub rooms: Vec<Name>,
}

/// Gives up tickets whose time is over, and forgets those that are over for long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpireTickets {
    /// The tickets.
    pub tickets: Vec<TicketKey>,
}

/// Takes away what is only kept for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CleanRooms {
    /// The rows: minutes, and what left the queue.
    pub rows: Vec<Key>,
}

operations!(Room: PutRoom, DeleteRoom, Join, Usher, Beat, Claim, Finish, Leave, Admit, LetIn, ExpireTickets, CleanRooms; counts);

/// Operations whose rule takes what they say, with the permission that they need.
macro_rules! ruled {
    ($($operation:ident -> $reply:ty, $rule:path, |$it:ident| $about:expr;)+) => {
        $(impl Operation for $operation {
            type Reply = $reply;

            fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<$reply, Stop> {
                $rule(self, context, view)
            }

            fn about(&self) -> About<'_> {
                let $it = self;
                $about
            }
        })+
    };
}

/// What is about one room is best decided together.
fn in_room(permission: Permission, room: &Name) -> About<'_> {
    About::caller(permission).counted(room.as_str(), "")
}

fn by_server(room: &Name) -> About<'_> {
    About::system().counted(room.as_str(), "")
}

ruled! {
    PutRoom -> RoomReply, doors::put, |it| in_room(Permission::ManageRoom, &it.room);
    DeleteRoom -> Done, doors::delete, |it| in_room(Permission::ManageRoom, &it.room);
    Usher -> TicketReply, gate::usher, |it| by_server(&it.room);
    Beat -> TicketReply, ticket::beat, |it| in_room(Permission::HoldTicket, &it.room);
    Claim -> TicketReply, ticket::claim, |it| in_room(Permission::HoldTicket, &it.room);
    Finish -> TicketReply, ticket::finish, |it| in_room(Permission::HoldTicket, &it.room);
    Leave -> TicketReply, ticket::leave, |it| in_room(Permission::HoldTicket, &it.room);
    Admit -> AdmitReply, gate::admit, |it| in_room(Permission::ManageRoom, &it.room);
    LetIn -> Done, gate::let_in, |it| it.rooms.first().map_or_else(About::system, by_server);
    ExpireTickets -> Done, expire::tickets, |it| {
        it.tickets.first().map_or_else(About::system, |ticket| by_server(&ticket.room)).weighing(it.tickets.len())
    };
    CleanRooms -> Done, expire::clean, |it| About::system().weighing(it.rows.len());
}

impl Operation for Join {
    type Reply = TicketReply;

    fn decide(&self, context: &Context<'_>, view: &mut View) -> Result<TicketReply, Stop> {
        join::join(self, context, view)
    }

    fn about(&self) -> About<'_> {
        let about = in_room(Permission::JoinRoom, &self.room).making(true);
        self.subject.as_ref().into_iter().fold(about, About::subject)
    }

    fn acting_mut(&mut self) -> Option<&mut SubjectId> {
        self.subject.as_mut()
    }
}
