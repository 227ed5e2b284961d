//! Whoever shows an admission: is it still inside?

use serde::Serialize;

use super::read::room_of;
use super::rows::TicketState;
use super::rule::{now_is, ticket_key};
use super::seal;
use crate::error::Refusal;
use crate::id::{Name, SubjectId};
use crate::permission::Permission;
use crate::query::{Ask, Question};
use crate::read::{Halt, Sight};
use crate::rows::{Key, Row, Seq};
use crate::time::Timestamp;
use crate::view::Wants;

/// How is the ticket of an admission?
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HolderQuery {
    /// The room.
    pub room: Name,
    /// The ticket's number, as the admission says.
    pub seq: u64,
    /// The hash of the ticket, as the admission says: in a room that was made anew the same number is another's.
    pub ticket_hash: String,
}

/// The ticket of an admission.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HolderAnswer {
    /// The ticket itself.
    pub ticket: String,
    /// Whose it is.
    pub subject: SubjectId,
    /// How far it has come.
    pub state: TicketState,
    /// Since when it is so, and when that ends by itself.
    pub since: Timestamp,
    /// See `since`.
    pub until: Timestamp,
    /// How long that is from now, by the store's time.
    pub left_ms: u64,
    /// How long an admission lasts when it is prolonged now; nothing where it is not.
    pub renewed_ms: Option<u64>,
}

impl Question for HolderQuery {
    type Answer = HolderAnswer;

    fn asks(&self, ask: &mut dyn FnMut(Ask<'_>)) {
        ask(Ask::of(Permission::HoldTicket));
    }

    fn read(&self, sight: &mut Sight<'_>) -> Result<HolderAnswer, Halt> {
        let (name, seq) = (&self.room, Seq::Given(self.seq));
        let found = sight.load(|| Wants::rows(vec![Key::Room(name.clone()), ticket_key(name, seq)]))?;
        let room = room_of(name, &found)?;
        let ticket = seal::seal(&room.secret, self.seq);
        if seal::ticket_hash(&ticket) != self.ticket_hash {
            return Err(Refusal::TicketNotFound.into());
        }
        let row = found.rows.get(1).cloned().flatten().and_then(Row::into_ticket).ok_or(Refusal::TicketNotFound)?;
        let renewed_ms = room.settings.renewable.then_some(room.settings.admission_ttl_ms);
        let (now, until) = (found.now.time(), row.due_at);
        let (state, left_ms) = (now_is(&row, now), until.0.saturating_sub(now.0));
        Ok(HolderAnswer { ticket, subject: row.subject, state, since: row.since, until, left_ms, renewed_ms })
    }
}
