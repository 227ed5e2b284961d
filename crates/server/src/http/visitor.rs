//! Calls that somebody may make who has not said who they are: a room decides who joins it, and a ticket is its holder's
//! credential.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use tally::core::command::Command;
use tally::core::hash::digest_text;
use tally::core::reply::TicketReply;
use tally::core::room::Join;
use tally::core::{Name, Permission};
use tally::{AnyEngine, TicketWatch};

use super::problem::Problem;
use super::request::{Caller, SignedIn, seen_from};
use crate::app::App;
use crate::auth::Principal;
use crate::auth::policy::Denied;
use crate::door::proxy::Peer;

/// Who calls, known or not.
pub struct Visitor {
    /// What they may do is up to what they ask for.
    pub caller: Caller,
    /// From where.
    pub address: IpAddr,
}

/// Marks a request of somebody who need not say who they are. Only small bodies are read of them.
#[derive(Clone, Copy)]
pub struct Unknown;

impl FromRequestParts<App> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let header = parts.headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        let principal = match app.auth.authenticate(header).await? {
            Some(principal) => {
                parts.extensions.insert(SignedIn);
                seen_from(principal, &parts.headers, app)
            }
            None => {
                parts.extensions.insert(Unknown);
                Principal::Nobody
            }
        };
        let peer = parts.extensions.get::<Peer>().copied().ok_or(Denied::Unauthenticated)?;
        let address = peer.told(&app.settings, &parts.headers).address();
        Ok(Self { caller: Caller { app: app.clone(), principal }, address })
    }
}

impl Visitor {
    /// The token that an Idempotency-Key stands for: each caller's own. Keys of strangers may be alike, so theirs go with where they are.
    pub fn token(&self, key: &str) -> String {
        let (name, address) = (self.caller.name(), self.address.to_string());
        let of = if matches!(self.caller.principal, Principal::Nobody) { address.as_str() } else { "" };
        format!("key:{}", digest_text(&[&name, of, key]))
    }
}

impl Caller {
    /// Somebody of whom nothing is asked but what they show.
    pub fn nobody(app: &App) -> Self {
        Self { app: app.clone(), principal: Principal::Nobody }
    }

    /// Takes a ticket, or gives the one that there is.
    pub async fn join(&self, join: Join) -> Result<TicketReply, Problem> {
        self.may_send(&Command::from(join.clone()))?;
        Ok(self.app.tally.join(join, &self.facts()).await?)
    }

    /// How a ticket is now, for somebody who has seen this version of its room.
    pub async fn ticket(&self, room: &Name, ticket: &str, seen: Option<i64>) -> Result<TicketReply, Problem> {
        self.may(Permission::HoldTicket, None, None)?;
        Ok(self.app.tally.ticket(room, ticket, seen, &self.facts()).await?)
    }

    /// Follows a ticket.
    pub async fn watch_ticket(&self, room: &Name, ticket: &str) -> Result<TicketWatch<AnyEngine>, Problem> {
        self.may(Permission::HoldTicket, None, None)?;
        Ok(self.app.tally.watch_ticket(room, ticket, &self.facts()).await?)
    }
}
