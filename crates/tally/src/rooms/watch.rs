//! One ticket as it changes.

use std::time::Duration;

use tally_core::reply::TicketReply;
use tally_core::room::Beat;
use tally_core::{Auth, Name};
use tally_engine::Engine;

use crate::{Error, Tally};

/// How often a ticket is told at most.
const EVERY: Duration = Duration::from_secs(1);

/// A ticket that somebody follows. It is kept alive as long as this is.
pub struct TicketWatch<E: Engine> {
    tally: Tally<E>,
    room: Name,
    ticket: String,
    auth: Auth,
    last: Option<TicketReply>,
}

impl<E: Engine> TicketWatch<E> {
    pub(super) async fn begin(tally: Tally<E>, room: Name, ticket: String, auth: Auth) -> Result<Self, Error> {
        tally.ticket(&room, &ticket, None, &auth).await?;
        Ok(Self { tally, room, ticket, auth, last: None })
    }

    /// The ticket: at once the first time, and then whenever it has changed, at most once a second. None once it is over and that was
    /// told.
    pub async fn next(&mut self) -> Option<Result<TicketReply, Error>> {
        if self.last.as_ref().is_some_and(|last| last.state.is_over()) {
            return None;
        }
        loop {
            if self.last.is_some() {
                tokio::time::sleep(EVERY).await;
            }
            let beat = Beat { room: self.room.clone(), ticket: self.ticket.clone() };
            let now = match self.tally.ask(beat).await {
                Ok(now) => now,
                Err(error) => return Some(Err(error)),
            };
            let _ = &self.auth;
            let same = |last: &TicketReply| (last.state, last.position) == (now.state, now.position);
            if !self.last.as_ref().is_some_and(same) {
                self.last = Some(now.clone());
                return Some(Ok(now));
            }
        }
    }
}
