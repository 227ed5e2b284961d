//! Rooms: whose turn is it?

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tally_core::query::{MinutesQuery, RoomQuery, RoomsQuery, TicketQuery};
use tally_core::room::read::{MinutesAnswer, RoomAnswer, RoomsAnswer};
use tally_core::room::rows::TicketState;
use tally_core::room::{
    Admit, AdmitReply, Beat, Claim, DeleteRoom, Finish, Join, Leave, PutRoom, RoomReply, RoomSettings, TicketReply,
};
use tally_core::{Name, SubjectId, Timestamp};

use crate::request::requests;
use crate::{Call, Client};

/// Somebody who is let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// The ticket that was claimed.
    pub ticket: String,
    /// `ADMITTED`.
    pub state: TicketState,
    /// A signed token, to be checked offline with the server's JWKS.
    pub admission: String,
    /// Its id: the same however often the ticket is claimed.
    pub jti: String,
    /// Until when it holds.
    pub expires_at: Timestamp,
}

/// A room that is closed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomDeleted {
    /// Whether there was one.
    #[serde(default)]
    pub changed: bool,
}

impl Client {
    /// Makes a room, or changes how it is set up. The settings are the whole of it.
    pub fn put_room(&self, room: &Name, settings: &RoomSettings) -> Call<RoomReply> {
        self.put(&["v1", "rooms", room.as_str()]).json(settings)
    }

    /// How a room is, and how it is set up.
    pub fn room(&self, room: &Name) -> Call<RoomAnswer> {
        self.get(&["v1", "rooms", room.as_str()])
    }

    /// All rooms.
    pub fn rooms(&self) -> Call<RoomsAnswer> {
        self.get(&["v1", "rooms"])
    }

    /// Closes a room for good and forgets its tickets.
    pub fn delete_room(&self, room: &Name) -> Call<RoomDeleted> {
        self.delete(&["v1", "rooms", room.as_str()])
    }

    /// How the minutes of a room were: the last hour, unless something else is said.
    pub fn minutes(&self, room: &Name, from: Option<Timestamp>, to: Option<Timestamp>) -> Call<MinutesAnswer> {
        let between = [("from", from.map(|at| at.to_string())), ("to", to.map(|at| at.to_string()))];
        self.get_with(&["v1", "rooms", room.as_str(), "minutes"], &between)
    }

    /// Takes a ticket, or gives the one that there is: the same `token` is the same ticket.
    pub fn join(&self, room: &Name, subject: Option<&SubjectId>, token: Option<&str>) -> Call<TicketReply> {
        let mut body = Map::new();
        if let Some(subject) = subject {
            body.insert("subject".to_owned(), Value::from(subject.as_str()));
        }
        if let Some(token) = token {
            body.insert("token".to_owned(), Value::from(token));
        }
        self.post(&["v1", "rooms", room.as_str(), "tickets"]).json(&body)
    }

    /// How a ticket is now.
    pub fn ticket(&self, room: &Name, ticket: &str) -> Call<TicketReply> {
        self.get(&["v1", "rooms", room.as_str(), "tickets", ticket])
    }

    /// Says that whoever holds a ticket is still there.
    pub fn heartbeat(&self, room: &Name, ticket: &str) -> Call<TicketReply> {
        self.post(&["v1", "rooms", room.as_str(), "tickets", ticket, "heartbeat"])
    }

    /// Goes in. Asked again, it is the same admission.
    pub fn claim(&self, room: &Name, ticket: &str) -> Call<Admission> {
        self.post(&["v1", "rooms", room.as_str(), "tickets", ticket, "claim"])
    }

    /// Is done inside, and makes place for somebody else.
    pub fn done(&self, room: &Name, ticket: &str) -> Call<TicketReply> {
        self.post(&["v1", "rooms", room.as_str(), "tickets", ticket, "done"])
    }

    /// Gives a ticket up.
    pub fn leave(&self, room: &Name, ticket: &str) -> Call<TicketReply> {
        self.delete(&["v1", "rooms", room.as_str(), "tickets", ticket])
    }

    /// Lets so many in by hand, beyond the rate and within the capacity.
    pub fn admit(&self, room: &Name, count: u32) -> Call<AdmitReply> {
        self.post(&["v1", "rooms", room.as_str(), "admit"]).json(&serde_json::json!({"count": count}))
    }
}

requests! {
    PutRoom => RoomReply: |ask, client| client.put_room(&ask.room, &ask.settings);
    DeleteRoom => RoomDeleted: |ask, client| client.delete_room(&ask.room);
    Join => TicketReply: |ask, client| client.join(&ask.room, ask.subject.as_ref(), ask.token.as_deref());
    Beat => TicketReply: |ask, client| client.heartbeat(&ask.room, &ask.ticket);
    Claim => Admission: |ask, client| client.claim(&ask.room, &ask.ticket);
    Finish => TicketReply: |ask, client| client.done(&ask.room, &ask.ticket);
    Leave => TicketReply: |ask, client| client.leave(&ask.room, &ask.ticket);
    Admit => AdmitReply: |ask, client| client.admit(&ask.room, ask.count);
    TicketQuery => TicketReply: |ask, client| client.ticket(&ask.room, &ask.ticket);
    RoomQuery => RoomAnswer: |ask, client| client.room(&ask.room);
    RoomsQuery => RoomsAnswer: |_ask, client| client.rooms();
    MinutesQuery => MinutesAnswer: |ask, client| client.minutes(&ask.room, ask.from, ask.to);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_room_is_read_as_the_contract_writes_it() {
        let answer = json!({
            "room": "sale", "waiting": 3, "ready": 1, "admitted": 2, "joined": 6, "version": 4, "open": true,
            "eta_ms": 300, "seed_hash": "00", "created_at": "2026-11-18T12:00:00.000Z",
            "as_of": "2026-11-18T12:00:01.000Z", "rate_per_s": 0.5, "capacity": 7, "mode": "hold", "more": "later"
        });
        let room: RoomAnswer = serde_json::from_value(answer).unwrap();
        assert_eq!((room.waiting, room.settings.capacity, room.settings.rate_per_s.micros), (3, 7, 500_000));
    }

    #[test]
    fn a_ticket_is_read_as_the_contract_writes_it() {
        let answer = json!({
            "room": "sale", "ticket": "7-x", "subject": "alice", "seq": 7, "state": "WAITING", "position": 3, "ahead": 2,
            "version": 4, "eta_ms": null, "eta_range_ms": null, "poll_after_ms": 1000,
            "joined_at": "2026-11-18T12:00:00.000Z"
        });
        let ticket: TicketReply = serde_json::from_value(answer).unwrap();
        assert_eq!((ticket.seq, ticket.position, ticket.state), (7, Some(3), TicketState::Waiting));
    }
}
