//! One ticket as it changes.
//!
//! While it waits, it is told from memory when the room ticks: many watches of a room cost what one does. The store is asked when
//! it has left the queue, and now and then to keep it alive.

use std::time::Duration;

use tally_core::reply::TicketReply;
use tally_core::room::Beat;
use tally_core::rows::TicketState;
use tally_core::{Auth, Name};
use tally_engine::Engine;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::followed::{Recalled, Watching};
use crate::live::Seat;
use crate::{Error, Tally};

/// How often a ticket is looked at that does not wait: those are few.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// And not more often than this, however short the room's times are.
const NOT_BEFORE: Duration = Duration::from_millis(50);

/// A ticket that somebody follows. It is kept alive as long as this is.
pub struct TicketWatch<E: Engine> {
    tally: Tally<E>,
    room: Name,
    ticket: String,
    auth: Auth,
    watching: Watching,
    last: TicketReply,
    is_told: bool,
    is_over: bool,
    beat_at: Instant,
    stopped: watch::Receiver<bool>,
    _seat: Seat,
}

/// Why somebody looks.
enum Woken {
    /// The room has ticked.
    Tick,
    /// The ticket has left the queue.
    Left,
    /// It is to be kept alive.
    Beat,
    /// Nobody serves it any more.
    Stopped,
}

impl<E: Engine> TicketWatch<E> {
    pub(super) async fn begin(tally: Tally<E>, room: Name, ticket: String, auth: Auth) -> Result<Self, Error> {
        let seat = tally.inner.hub.take_seat()?;
        let last = tally.ask(Beat { room: room.clone(), ticket: ticket.clone() }).await?;
        let followed = tally.inner.rooms.follow(&room).ok_or(Error::Overloaded)?;
        let watching = followed.watch(last.seq);
        followed.note(&last);
        let stopped = tally.inner.stop.subscribe();
        let (beat_at, is_told, is_over) = (Instant::now(), false, false);
        let mut begun =
            Self { tally, room, ticket, auth, watching, last, is_told, is_over, beat_at, stopped, _seat: seat };
        begun.plan_beat();
        Ok(begun)
    }

    /// The ticket: at once the first time, and then whenever it has changed; while it waits at most once a second. None once it is
    /// over and that was told, or nobody serves it any more.
    pub async fn next(&mut self) -> Option<Result<TicketReply, Error>> {
        if self.is_over {
            return None;
        }
        if !std::mem::replace(&mut self.is_told, true) {
            self.is_over = self.last.state.is_over();
            return Some(Ok(self.last.clone()));
        }
        loop {
            let found = match self.woken().await {
                Woken::Stopped => None,
                Woken::Tick => self.look().await.transpose(),
                Woken::Left => Some(self.read().await),
                Woken::Beat => Some(self.beat().await),
            };
            match found {
                None if *self.stopped.borrow() => return None,
                None => {}
                Some(Ok(now)) => {
                    let is_new = (now.state, now.position) != (self.last.state, self.last.position);
                    // What is told never runs backwards.
                    if is_new && now.version >= self.last.version {
                        self.is_over = now.state.is_over();
                        self.last = now.clone();
                        self.plan_beat();
                        return Some(Ok(now));
                    }
                }
                Some(Err(error)) => {
                    // A room or a ticket that is not there does not come back.
                    self.is_over = matches!(error, Error::Refused(_) | Error::Stopping);
                    return Some(Err(error));
                }
            }
        }
    }

    async fn woken(&mut self) -> Woken {
        let Watching { ticks, left, .. } = &mut self.watching;
        tokio::select! {
            biased;
            _ = self.stopped.wait_for(|stopped| *stopped) => Woken::Stopped,
            () = left.notified() => Woken::Left,
            // It cannot fail: what is watched holds the sender.
            _ = ticks.changed() => Woken::Tick,
            () = sleep_until(self.beat_at) => Woken::Beat,
        }
    }

    /// Looks in memory. The store is asked where the ticket should wait, and does not.
    async fn look(&mut self) -> Result<Option<TicketReply>, Error> {
        let (version, is_open) = *self.watching.ticks.borrow_and_update();
        let is_forgotten = version == i64::MIN;
        let may_wait = match self.last.state {
            TicketState::Waiting => true,
            TicketState::BeforeOpen => is_open,
            TicketState::Ready | TicketState::Admitted => false,
            TicketState::Done | TicketState::Left | TicketState::Expired => false,
        };
        if is_forgotten {
            // The room is gone, or is followed anew.
            let read = self.read().await?;
            let followed = self.tally.inner.rooms.follow(&self.room).ok_or(Error::Overloaded)?;
            self.watching = followed.watch(self.last.seq);
            return Ok(Some(read));
        }
        if !may_wait {
            return Ok(None);
        }
        match self.watching.followed.recall(&self.ticket, None, self.tally.inner.rooms.now()) {
            Recalled::Told(reply) => Ok(Some(*reply)),
            // One of all who are behind has the room read for the others.
            Recalled::Behind | Recalled::Unknown => self.read().await.map(Some),
        }
    }

    async fn read(&self) -> Result<TicketReply, Error> {
        self.tally.ticket(&self.room, &self.ticket, Some(self.last.version), &self.auth).await
    }

    async fn beat(&mut self) -> Result<TicketReply, Error> {
        self.plan_beat();
        let now = self.tally.ask(Beat { room: self.room.clone(), ticket: self.ticket.clone() }).await?;
        self.watching.followed.note(&now);
        Ok(now)
    }

    /// Three times in the time that it may be silent.
    fn plan_beat(&mut self) {
        // Until the room was read, the ticket itself says how long it may be silent.
        let left = Duration::from_millis(self.last.facts.until.0.saturating_sub(self.last.facts.now.0));
        let third = self.watching.followed.idle_ttl().map_or((left / 3).min(LOOK_EVERY), |ttl| ttl / 3);
        let after = match self.last.state {
            TicketState::BeforeOpen | TicketState::Waiting => third,
            TicketState::Ready | TicketState::Admitted => third.min(LOOK_EVERY),
            TicketState::Done | TicketState::Left | TicketState::Expired => LOOK_EVERY,
        };
        self.beat_at = Instant::now() + after.max(NOT_BEFORE);
    }
}
