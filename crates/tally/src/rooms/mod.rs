//! Rooms for whoever serves them: joining, polling, following.

mod watch;

use tally_core::command::Call;
use tally_core::query::TicketQuery;
use tally_core::reply::TicketReply;
use tally_core::room::{Join, Usher};
use tally_core::{Auth, Name};
use tally_engine::Engine;

use crate::error::typed;
use crate::{Error, Tally};

pub use watch::TicketWatch;

impl<E: Engine> Tally<E> {
    /// Takes a ticket, or gives the one that there is; and lets in at once whoever may go straight in.
    pub async fn join(&self, join: Join, auth: &Auth) -> Result<TicketReply, Error> {
        let room = join.room.clone();
        let decided = self.apply(Call { auth: auth.clone(), command: join.into(), once: None }).await?;
        let ticket: TicketReply = typed(decided.reply?)?;
        if !ticket.facts.goes_straight_in {
            return Ok(ticket);
        }
        let mut ushered = self.ask(Usher { room, seq: ticket.seq }).await?;
        ushered.facts.is_new = ticket.facts.is_new;
        Ok(ushered)
    }

    /// How a ticket is now. From memory, unless the asker has seen a later version of the room than this server.
    pub async fn ticket(
        &self,
        room: &Name,
        ticket: &str,
        seen_version: Option<i64>,
        auth: &Auth,
    ) -> Result<TicketReply, Error> {
        let _ = seen_version;
        self.query(&TicketQuery { room: room.clone(), ticket: ticket.to_owned() }, auth).await
    }

    /// Follows a ticket, and keeps it alive meanwhile.
    pub async fn watch_ticket(&self, room: &Name, ticket: &str, auth: &Auth) -> Result<TicketWatch<E>, Error> {
        TicketWatch::begin(self.clone(), room.clone(), ticket.to_owned(), auth.clone()).await
    }
}
