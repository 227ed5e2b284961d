//! A room on an engine, by a clock that is moved by hand: every call is decided at the time that the case says, and what is due is
//! done one row after another, as the worker does it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tally_core::command::{Auth, Call};
use tally_core::due::settling;
use tally_core::operation::Operation;
use tally_core::query::{Question, TicketQuery};
use tally_core::read::{Asked, Found, Halt, Seen, Sight};
use tally_core::reply::{Done, Reply, TicketReply, Told};
use tally_core::room::{Admit, AdmitReply, Beat, Claim, DeleteRoom, Finish, Join, Leave, PutRoom, RoomReply, Usher};
use tally_core::rows::{Key, Partitions, RowKind, SequenceKey, TicketState};
use tally_core::time::{Stamp, Timestamp};
use tally_core::{Catalog, Command, Name, Refusal};
use tally_engine::{Engine, Range};

use crate::driver::{Draft, Step};
use crate::sample::{name, subject};

/// When a case begins: a whole minute.
pub(super) const START_MS: u64 = 60_000_000;
/// What is settled in time. What is only cleaned up is left to others.
const PROMPT: [RowKind; 2] = [RowKind::Gate, RowKind::Ticket];
/// More rows than any case has due at one moment.
const STEPS_MAX: usize = 5_000;

/// The room, and whoever asks.
pub(super) struct Hall<'a, E> {
    pub(super) engine: &'a E,
    pub(super) now: u64,
    pub(super) auth: Auth,
    catalog: Catalog,
    stamp: Stamp,
    id: u64,
}

pub(super) fn sale() -> Name {
    name("sale")
}

/// The command that makes the room, or changes it.
pub(super) fn put(settings: &Value) -> PutRoom {
    let settings = serde_json::from_value(settings.clone()).expect("these are settings of a room");
    PutRoom { room: sale(), settings, fresh: ["a secret".into(), "a seed".into()], declared: false }
}

/// The command with which somebody joins.
pub(super) fn joining(who: &str, token: Option<&str>) -> Join {
    let (subject, token) = (Some(subject(who)), token.map(str::to_owned));
    Join { room: sale(), subject, token, fresh: format!("fresh {who}"), ip: None }
}

impl<'a, E: Engine> Hall<'a, E> {
    /// A room that was just made.
    pub(super) async fn new(engine: &'a E, settings: Value) -> Self {
        let auth = Arc::new(json!({"kind": "system"}));
        let (catalog, stamp) = (Catalog::default(), Stamp::default());
        let mut hall = Self { engine, now: START_MS, auth, catalog, stamp, id: 0 };
        hall.put(settings).await.expect("a room can be made");
        hall
    }

    /// Runs any command, and gives its answer as the runner would.
    pub(super) async fn run(&mut self, command: Command) -> Result<Reply, Refusal> {
        let stamp = self.stamp.next(Stamp::at(Timestamp(self.now)));
        let call = Call { auth: self.auth.clone(), command, once: None };
        self.stamp = Stamp(stamp.0 + call.command.weight() as u64 - 1);
        self.id += 1_000;
        let draft = Draft::new(self.engine, &self.catalog, &Step { stamp, id: self.id, call }).await;
        let mut firsts: BTreeMap<SequenceKey, u64> = BTreeMap::new();
        if !draft.changes.is_empty() {
            let committed = draft.commit(self.engine).await.expect("nobody else writes, so nothing can have moved");
            let ranks = draft.view.told_ranks().iter().map(|told| draft.view.final_rank(told));
            let ranks: Vec<u64> = ranks.collect();
            assert_eq!(committed.ranks.unwrap_or(ranks.clone()), ranks, "nobody has come in between");
            let taken = draft.changes.numbers.iter().map(|(sequence, _)| sequence.clone());
            firsts.extend(taken.zip(committed.numbers));
        }
        let first = |sequence: &SequenceKey| firsts.get(sequence).copied().unwrap_or(0);
        let mut reply = draft.decided.reply?;
        reply.correct(&mut Told { off: &|_| 0, first: &first, ranks: &mut std::iter::empty() });
        Ok(reply)
    }

    pub(super) async fn ask<O: Operation>(&mut self, operation: O) -> Result<O::Reply, Refusal> {
        let reply = self.run(operation.into()).await?;
        Ok(O::Reply::try_from(reply).unwrap_or_else(|_| panic!("it is answered by its reply")))
    }

    pub(super) async fn put(&mut self, settings: Value) -> Result<RoomReply, Refusal> {
        self.ask(put(&settings)).await
    }

    pub(super) async fn join(&mut self, who: &str, token: Option<&str>) -> Result<TicketReply, Refusal> {
        self.ask(joining(who, token)).await
    }

    pub(super) async fn joins(&mut self, who: &str) -> TicketReply {
        self.join(who, None).await.expect("it may join")
    }

    pub(super) async fn beat(&mut self, ticket: &str) -> Result<TicketReply, Refusal> {
        self.ask(Beat { room: sale(), ticket: ticket.to_owned() }).await
    }

    pub(super) async fn claim(&mut self, ticket: &str) -> Result<TicketReply, Refusal> {
        self.ask(Claim { room: sale(), ticket: ticket.to_owned() }).await
    }

    pub(super) async fn finish(&mut self, ticket: &str) -> Result<TicketReply, Refusal> {
        self.ask(Finish { room: sale(), ticket: ticket.to_owned() }).await
    }

    pub(super) async fn leave(&mut self, ticket: &str) -> Result<TicketReply, Refusal> {
        self.ask(Leave { room: sale(), ticket: ticket.to_owned() }).await
    }

    pub(super) async fn admit(&mut self, count: u32) -> Result<AdmitReply, Refusal> {
        self.ask(Admit { room: sale(), count }).await
    }

    pub(super) async fn usher(&mut self, seq: u64) -> Result<TicketReply, Refusal> {
        self.ask(Usher { room: sale(), seq }).await
    }

    pub(super) async fn delete(&mut self) -> Result<Done, Refusal> {
        self.ask(DeleteRoom { room: sale() }).await
    }

    /// How a ticket is, which is only looked at.
    pub(super) async fn ticket(&self, ticket: &str) -> Result<TicketReply, Refusal> {
        self.query(&TicketQuery { room: sale(), ticket: ticket.to_owned() }).await
    }

    pub(super) async fn state(&self, ticket: &str) -> TicketState {
        self.ticket(ticket).await.expect("the ticket is there").state
    }

    pub(super) async fn states(&self, tickets: &[TicketReply]) -> Vec<TicketState> {
        let mut states = Vec::new();
        for ticket in tickets {
            states.push(self.state(&ticket.ticket).await);
        }
        states
    }

    /// Answers a question, by the clock of the case.
    pub(super) async fn query<Q: Question>(&self, question: &Q) -> Result<Q::Answer, Refusal> {
        let (now, mut seen) = (Timestamp(self.now), Vec::new());
        loop {
            match question.read(&mut Sight::new(&self.catalog, &self.auth, now, &seen)) {
                Ok(answer) => return Ok(answer),
                Err(Halt::Refused(refusal)) => return Err(refusal),
                Err(Halt::Moving) => panic!("nobody else writes"),
                Err(Halt::Missing(Asked::Load(wants) | Asked::LoadLoosely(wants))) => {
                    let loaded = self.engine.load(&wants).await.expect("a load works");
                    let (rows, totals, ranks) = (loaded.rows, loaded.totals, loaded.ranks);
                    seen.push(Seen::Found(Arc::new(Found { rows, totals, ranks, now: Stamp::at(now) })));
                }
                Err(Halt::Missing(Asked::Scan(range, limit))) => {
                    let page = self.engine.scan(&range, limit).await.expect("a scan works");
                    seen.push(Seen::Page(Arc::new(tally_core::read::Page { items: page.items, more: page.more })));
                }
            }
        }
    }

    /// The row that is due first, up to a time, and since when.
    async fn due(&self, until: u64) -> Option<(u64, Key)> {
        let mut first = None;
        for kind in PROMPT {
            let from = settling(kind).expect("it is due some time").from;
            let range = Range::Due { kind, partitions: Partitions::ALL, from, before: Timestamp(until + 1) };
            let page = self.engine.scan(&range, 1).await.expect("a scan works");
            let found = page.items.into_iter().next().and_then(|(key, row)| Some((row.due()?.0, key)));
            first = [first, found].into_iter().flatten().min();
        }
        first
    }

    /// Does the one thing that is due first. The clock is moved there. Nothing if nothing is due until then.
    pub(super) async fn step(&mut self, until: u64) -> Option<Key> {
        let (at, key) = self.due(until).await?;
        self.now = self.now.max(at);
        let settling = settling(key.kind()).expect("it is due some time");
        self.run((settling.command)(vec![key.clone()])).await.expect("what is due is not refused");
        Some(key)
    }

    /// Lets time pass, and does what is due meanwhile.
    pub(super) async fn wait(&mut self, ms: u64) {
        let until = self.now + ms;
        for step in 0.. {
            if self.step(until).await.is_none() {
                break;
            }
            assert!(step < STEPS_MAX, "what is due comes to an end");
        }
        self.now = until;
    }
}
