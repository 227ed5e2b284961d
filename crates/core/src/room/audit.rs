//! What rows of rooms say about each other: how many are inside, and how many of them are READY.

use super::rows::{RoomCount, queue};
use super::rule::ticket_key;
use crate::id::Name;
use crate::rows::{Row, Seq, SequenceKey, Ticket, TicketKey, TicketState, TotalKey};
use crate::verify::{self, Claims, Judged, Known, Said};
use crate::view::{Stop, View};

/// Tickets of a room that are read again to be sure. Of a room that has had more, what was read of the whole store counts.
const TICKETS_MAX: u64 = 20_000;

/// What is said twice: a room's total of these tickets is how many there are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fact {
    room: Name,
    count: RoomCount,
}

/// The fact that a total is, where tickets stand behind it.
pub(crate) fn counted(room: &Name, count: RoomCount) -> Option<verify::Fact> {
    match count {
        RoomCount::Inside | RoomCount::Ready => Some(Fact { room: room.clone(), count }.into()),
        // What only ever grows has no rows behind it: they are gone after a while.
        RoomCount::Version | RoomCount::Admitted | RoomCount::Left | RoomCount::Expired => None,
    }
}

/// The totals that a ticket adds to.
pub(super) fn counts(ticket: &Ticket) -> impl Iterator<Item = RoomCount> {
    let inside = ticket.state.is_inside().then_some(RoomCount::Inside);
    let ready = (ticket.state == TicketState::Ready).then_some(RoomCount::Ready);
    inside.into_iter().chain(ready)
}

/// What a ticket says.
pub(super) fn ticket(key: &TicketKey, ticket: &Ticket, _known: &Known, claims: &mut Claims<'_>) {
    for count in counts(ticket) {
        claims.counted(Fact { room: key.room.clone(), count }.into(), 1);
    }
}

impl Fact {
    fn key(&self) -> TotalKey {
        self.count.of(&self.room)
    }
}

impl Said for Fact {
    fn look(&self, _who: Option<&crate::rows::Key>, view: &mut View) -> Result<Judged, Stop> {
        let said = view.total_decided(&self.key());
        let last = SequenceKey::last(view.row_uncounted(&queue(&self.room).key())?.as_ref());
        let said = said?;
        let tickets: Vec<_> = (1..=last.min(TICKETS_MAX)).map(|seq| ticket_key(&self.room, Seq::Given(seq))).collect();
        view.want(&tickets, &[])?;
        let mut counted = 0;
        for key in &tickets {
            let ticket = view.kept(key, Row::into_ticket)?;
            counted += i64::from(ticket.is_some_and(|ticket| counts(&ticket).any(|count| count == self.count)));
        }
        Ok(if last > TICKETS_MAX { Judged { said, counted: said } } else { Judged { said, counted } })
    }

    fn put_right(&self, who: Option<&crate::rows::Key>, view: &mut View) -> Result<bool, Stop> {
        let Judged { said, counted } = self.look(who, view)?;
        view.add(&self.key(), counted - said)?;
        Ok(counted != said)
    }

    fn total(&self) -> Option<TotalKey> {
        Some(self.key())
    }

    fn words(&self, judged: Judged, _who: Option<&crate::rows::Key>) -> String {
        self.key().words(judged)
    }
}
