//! Rooms for whoever serves them: setting up, joining, polling, following.

mod follow;
mod followed;
mod known;
mod queue;
mod watch;

use std::sync::atomic::Ordering;

use tally_core::command::{Call, Command};
use tally_core::query::TicketQuery;
use tally_core::reply::TicketReply;
use tally_core::room::{Join, PutRoom, RoomReply, RoomSettings, Usher};
use tally_core::{Auth, Name, Refusal};
use tally_engine::{Engine, StoreError};

use crate::error::typed;
use crate::{Error, Tally};

pub(crate) use follow::Rooms;
pub use watch::TicketWatch;

/// Bytes of a room's secrets.
const SECRET_BYTES: usize = 32;

/// A text that nobody can guess.
fn fresh() -> Result<String, Error> {
    let mut bytes = [0; SECRET_BYTES];
    let failed = |error| StoreError::Unavailable(format!("this machine gives no random numbers: {error}"));
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl<E: Engine> Tally<E> {
    /// Makes a room, or changes how it is set up.
    pub async fn put_room(&self, room: &Name, settings: RoomSettings) -> Result<RoomReply, Error> {
        let fresh = [fresh()?, fresh()?];
        let reply = self.ask(PutRoom { room: room.clone(), settings, fresh, declared: false }).await?;
        self.room_changed(room);
        Ok(reply)
    }

    /// Makes the rooms that are declared, or has them be what the configuration says now.
    pub(crate) async fn declare_rooms(&self) -> Result<(), Error> {
        for declared in self.catalog().rooms() {
            let (room, settings) = (declared.name.clone(), declared.settings.clone());
            let put = PutRoom { room: room.clone(), settings, fresh: [fresh()?, fresh()?], declared: true };
            match self.apply(Call::system(Command::from(put))).await?.reply {
                Ok(_) => self.room_changed(&room),
                // People stand in it, and a server that does not start would help none of them.
                Err(Refusal::Conflict(reason)) => {
                    tracing::error!(%room, reason, "the room stays as it is: what is declared cannot be done to it now");
                }
                Err(refusal) => return Err(refusal.into()),
            }
        }
        Ok(())
    }

    /// Whoever follows the room reads it anew.
    fn room_changed(&self, room: &Name) {
        self.inner.rooms.changed(room);
        self.inner.rooms.teller.add(tally_engine::Topic::Room(room.clone()));
    }

    /// Takes a ticket, or gives the one that there is; and lets in at once whoever may go straight in.
    pub async fn join(&self, join: Join, auth: &Auth) -> Result<TicketReply, Error> {
        let room = join.room.clone();
        let decided = self.apply(Call { auth: auth.clone(), command: join.into(), once: None }).await?;
        let ticket: TicketReply = typed(decided.reply?)?;
        if !ticket.facts.goes_straight_in {
            self.inner.rooms.note(&ticket);
            return Ok(ticket);
        }
        let mut ushered = self.ask(Usher { room, seq: ticket.seq }).await?;
        ushered.facts.is_new = ticket.facts.is_new;
        self.inner.rooms.note(&ushered);
        Ok(ushered)
    }

    /// How a ticket is now. From memory while it waits, unless the asker has seen a later version of the room than this server.
    pub async fn ticket(
        &self,
        room: &Name,
        ticket: &str,
        seen_version: Option<i64>,
        auth: &Auth,
    ) -> Result<TicketReply, Error> {
        let rooms = &self.inner.rooms;
        if let Some(reply) = rooms.recall(room, ticket, seen_version).await {
            rooms.from_memory.fetch_add(1, Ordering::Relaxed);
            return Ok(reply);
        }
        rooms.from_store.fetch_add(1, Ordering::Relaxed);
        let reply = self.query(&TicketQuery { room: room.clone(), ticket: ticket.to_owned() }, auth).await?;
        rooms.follow(room);
        rooms.note(&reply);
        Ok(reply)
    }

    /// Follows a ticket, and keeps it alive meanwhile.
    pub async fn watch_ticket(&self, room: &Name, ticket: &str, auth: &Auth) -> Result<TicketWatch<E>, Error> {
        TicketWatch::begin(self.clone(), room.clone(), ticket.to_owned(), auth.clone()).await
    }

    /// Rooms that are kept in memory here, because somebody asks about them.
    pub fn rooms_followed(&self) -> usize {
        self.inner.rooms.count()
    }

    /// Questions about tickets that were answered from memory.
    pub fn polls_from_memory(&self) -> u64 {
        self.inner.rooms.from_memory.load(Ordering::Relaxed)
    }

    /// Questions about tickets for which the store was asked.
    pub fn polls_from_store(&self) -> u64 {
        self.inner.rooms.from_store.load(Ordering::Relaxed)
    }
}
