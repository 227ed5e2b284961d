//! A room on Tally in process: who joins, who asks, who follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result};
use tally::Tally;
use tally::core::command::Auth;
use tally::core::reply::TicketReply;
use tally::core::room::{Join, PutRoom, RoomSettings};
use tally::core::{Name, SubjectId};

use crate::load::{self, Load, Measured};

/// One room, on one store or on several servers of one.
#[derive(Clone)]
pub(super) struct Hall {
    pub(super) servers: Vec<Tally>,
    pub(super) room: Name,
    pub(super) auth: Auth,
    next: Arc<AtomicU64>,
}

/// Settings of a room in which everybody waits.
pub(super) fn held() -> serde_json::Value {
    serde_json::json!({"mode": "hold", "idle_ttl_ms": 3_600_000})
}

impl Hall {
    pub(super) async fn make(servers: &[Tally], room: &str, settings: serde_json::Value) -> Result<Self> {
        let hall = Self {
            servers: servers.to_vec(),
            room: Name::new(room)?,
            auth: Arc::new(serde_json::json!({"kind": "system"})),
            next: Arc::default(),
        };
        hall.put(settings).await?;
        Ok(hall)
    }

    pub(super) async fn put(&self, settings: serde_json::Value) -> Result<()> {
        let settings: RoomSettings = serde_json::from_value(settings)?;
        let fresh = ["what seals the tickets of a benchmark".to_owned(), "a seed".to_owned()];
        self.servers[0].ask(PutRoom { room: self.room.clone(), settings, fresh, declared: false }).await?;
        Ok(())
    }

    /// Somebody new joins, on one of the servers.
    pub(super) async fn join(&self, server: usize) -> Result<TicketReply> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let who = format!("u{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let subject = Some(SubjectId::new(&who)?);
        let join = Join { room: self.room.clone(), subject, token: None, fresh: String::new(), ip: None };
        Ok(self.servers[server % self.servers.len()].join(join, &self.auth).await?)
    }

    /// How a ticket is.
    pub(super) async fn ticket(&self, ticket: &TicketReply) -> Result<TicketReply> {
        Ok(self.servers[0].ticket(&self.room, &ticket.ticket, Some(ticket.version), &self.auth).await?)
    }

    /// Joins a second, each with its exact position.
    pub(super) async fn joins(&self, load: Load) -> Result<Measured> {
        let hall = self.clone();
        load::run(load, async move |caller, recorder| {
            loop {
                let asked = Instant::now();
                let ticket = hall.join(caller).await?;
                let position = ticket.position.context("everybody waits")?;
                // Nobody leaves: whoever has the n-th number stands at the n-th place.
                anyhow::ensure!(position == ticket.seq, "{} was told {position}", ticket.seq);
                if !recorder.answered(asked, 1) {
                    return Ok(());
                }
            }
        })
        .await
    }

    /// Polls a second of tickets that wait.
    pub(super) async fn polls(&self, load: Load, tickets: Arc<Vec<TicketReply>>) -> Result<Measured> {
        let hall = self.clone();
        load::run(load, async move |caller, recorder| {
            for read in caller.. {
                let ticket = &tickets[read.wrapping_mul(2_654_435_761) % tickets.len()];
                let asked = Instant::now();
                let now = hall.ticket(ticket).await?;
                anyhow::ensure!(now.position.is_some(), "it waits");
                if !recorder.answered(asked, 1) {
                    break;
                }
            }
            Ok(())
        })
        .await
    }

    /// So many join, with so many in flight on every server. All the tickets, by number.
    pub(super) async fn burst(&self, count: u64, callers: usize, progress: impl Fn(u64)) -> Result<Vec<TicketReply>> {
        let left = Arc::new(AtomicU64::new(count));
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..callers {
            let (hall, left) = (self.clone(), left.clone());
            tasks.spawn(async move {
                let mut tickets = Vec::new();
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    tickets.push(hall.join(caller).await?);
                }
                anyhow::Ok(tickets)
            });
        }
        let mut all = Vec::new();
        while let Some(tickets) = tasks.join_next().await {
            let tickets = tickets??;
            progress(tickets.len() as u64);
            all.extend(tickets);
        }
        all.sort_unstable_by_key(|ticket| ticket.seq);
        Ok(all)
    }
}
