//! How the rows of waiting rooms are laid out, and what follows from each: when it is due, where it stands, what it says twice.

use std::sync::Arc;

use super::def::RoomSettings;
use super::rows::{
    EntryKey, Gate, Gone, GoneKey, LOG, Minute, MinuteKey, Phase, QUEUE, Recent, Room, Ticket, TicketKey, TicketState,
};
use super::{CleanRooms, ExpireTickets, LetIn, audit};
use crate::due::{Settling, WhenDue};
use crate::rows::{
    Due, InOrder, Kind, NumberOf, OrderKey, Ordered, TotalKey, Typed, columns, declare, documents, kind, texts,
};
use crate::verify::Audit;

/// What is counted of rooms, as totals.
pub(crate) const ROOM: NumberOf =
    NumberOf { table: "room_total", letter: b'O', mark: "%", with_key: false, listed: None };

texts!(TicketState: Self::name, Self::from_name; Phase: Self::name, Self::from_name);
documents!(Arc<RoomSettings>, Box<Recent>);
columns!(Room { settings, declared, secret, seed, phase, early, awake, created_at });
columns!(Gate { passed, budget, budget_at, due_at, is_full, swept, recent });
columns!(TicketKey { room, seq });
columns!(Ticket { subject, token, state, score, joined_at, since, due_at, previous });
columns!(EntryKey { room, subject, token });
columns!(GoneKey { room, number });
columns!(Gone { places, due_at });
columns!(MinuteKey { room, minute });
columns!(Minute { joined, admitted, left, expired, longest_wait_ms, due_at });

/// What is to be done in time: somebody waits for it.
const fn prompt(command: fn(Vec<crate::rows::Key>) -> crate::command::Command) -> Settling {
    Settling { within_ms: 0, ..Settling::cleaned(command) }
}

impl Kind for kind::Room {
    declare!(Room = b'R' "room" in "room"
        ("room" Text) =>
        ("settings" Json, "declared" Json, "secret" Text, "seed" Text, "phase" Text, "early" Number, "awake" Flag,
            "created_at" Time)
        Changed With(0));
}

impl Kind for kind::Gate {
    declare!(Gate = b'G' "room_gate" in "room"
        ("room" Text) =>
        ("passed" Number, "budget" Number, "budget_at" Time, "due_at" Time, "is_full" Flag, "swept" Number, "recent" Json)
        Absent With(0), due Due::At("due_at"), numbered QUEUE);

    const DUE: Option<WhenDue<Self>> = Some(WhenDue {
        at: |gate| Some(gate.due_at),
        settling: prompt(|keys| LetIn { rooms: Self::keys(keys) }.into()),
    });
}

impl Kind for kind::Ticket {
    declare!(Ticket = b'k' "ticket" in "room"
        ("room" Text, "seq" Number) =>
        ("subject" Text, "token" Text, "state" Text, "score" Signed, "joined_at" Time, "since" Time, "due_at" Time,
            "previous" Number)
        Absent With(0), due Due::At("due_at"),
        order Ordered { score: Some("score"), reached: "seq", only: Some(("state", "WAITING")) },
        numbered QUEUE);

    const DUE: Option<WhenDue<Self>> = Some(WhenDue {
        at: |ticket| Some(ticket.due_at),
        settling: prompt(|keys| ExpireTickets { tickets: Self::keys(keys) }.into()),
    });

    const ORDER: Option<InOrder<Self>> = Some(InOrder {
        order: |key| OrderKey::Queue(key.room.clone()),
        place: |key, ticket| ticket.stands(key),
        row: None,
    });

    const AUDIT: Option<Audit<Self>> = Some(Audit { claims: Some(audit::ticket), ..Audit::NOTHING });

    fn counts(key: &TicketKey, ticket: &Ticket, mut add: impl FnMut(TotalKey, i64)) {
        audit::counts(ticket).for_each(|count| add(count.of(&key.room), 1));
    }
}

impl Kind for kind::Entry {
    declare!(Entry = b'y' "entry" in "room"
        ("room" Text, "subject" Text, "token" Text) => ("seq" Number)
        Key With(0), numbered QUEUE);
}

impl Kind for kind::Gone {
    declare!(Gone = b'Z' "room_gone" in "room"
        ("room" Text, "number" Number) => ("places" Numbers, "due_at" Time)
        Absent With(0), due Due::At("due_at"), numbered LOG);

    const DUE: Option<WhenDue<Self>> =
        Some(WhenDue { at: |gone| Some(gone.due_at), settling: Settling::cleaned(|rows| CleanRooms { rows }.into()) });
}

impl Kind for kind::Minute {
    declare!(Minute = b'M' "room_minute" in "room"
        ("room" Text, "minute" Time) =>
        ("joined" Number, "admitted" Number, "left_count" Number, "expired" Number, "longest_wait_ms" Number, "due_at" Time)
        Absent With(0), due Due::At("due_at"));

    const DUE: Option<WhenDue<Self>> = Some(WhenDue {
        at: |minute| Some(minute.due_at),
        settling: Settling::cleaned(|rows| CleanRooms { rows }.into()),
    });
}
