//! Three servers join people to one room, let them in and out, all at once; one of them may end anywhere.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tally_core::command::Command;
use tally_core::operation::Operation;
use tally_core::reply::TicketReply;
use tally_core::room::rows::RoomCount;
use tally_core::room::{Claim, ExpireTickets, Finish, Leave, LetIn};
use tally_core::rows::TicketState::{self, Admitted, Done, Left, Waiting};
use tally_core::rows::{Key, Row, Seq, TicketKey};
use tally_core::view::Wants;
use tally_core::{Code, Refusal};
use tally_engine::faulty::Fault;
use tally_engine::{Engine, Runner};
use tokio::task::JoinSet;

use super::hall::{joining, put, sale};
use crate::EngineFactory;
use crate::joins::{last, ticket_key};
use crate::sample::call;
use crate::shared::line::Break;
use crate::shared::servers::{Clocks, SERVERS, Servers};
use crate::stand::Stand;
use crate::universe::Universe;

const PEOPLE: usize = 36;
const CAPACITY: i64 = 4;
const PATIENCE: Duration = Duration::from_secs(100);

/// The servers that may be asked: one where the store is one process's.
#[derive(Clone)]
struct Doors(Vec<Runner>);

impl Doors {
    fn of<F: EngineFactory>(servers: &Servers<F>) -> Self {
        let count = if servers.stand.servers() { SERVERS } else { 1 };
        Self((0..count).map(|number| servers.runner(number)).collect())
    }

    /// Asks one of them, and then the next one, until there is an answer. Everything that is asked here may be asked twice.
    async fn ask<O: Operation + Clone>(&self, mut number: usize, operation: O) -> Result<O::Reply, Refusal> {
        loop {
            let command: Command = operation.clone().into();
            if let Ok(decided) = self.0[number % self.0.len()].apply(call(command)).await {
                let reply = O::Reply::try_from(decided.reply?);
                return Ok(reply.unwrap_or_else(|_| panic!("it is answered by its reply")));
            }
            number += 1;
        }
    }

    async fn join(&self, number: usize, who: &str) -> TicketReply {
        self.ask(number, joining(who, Some("a token"))).await.expect("it may join")
    }
}

async fn make<F: EngineFactory>(stand: Stand<F>, settings: serde_json::Value) -> (Servers<F>, Doors) {
    let servers = Servers::start(stand, Clocks::OfTheStore).await;
    let doors = Doors::of(&servers);
    doors.ask(0, put(&settings)).await.expect("a room can be made");
    (servers, doors)
}

fn conflicts<F: EngineFactory>(servers: &Servers<F>) -> u64 {
    servers.all.iter().map(|server| server.line.conflicts()).sum()
}

/// Nobody leaves, so whoever has the n-th number is told the n-th position, on whichever server; and they are in nobody's way.
pub(super) async fn positions_are_exact_at_their_commit_and_joins_do_not_conflict<F: EngineFactory>(stand: Stand<F>) {
    let (servers, doors) = make(stand, json!({"mode": "hold"})).await;
    // The first one wakes the gate.
    assert_eq!(doors.join(0, "first").await.position, Some(1));
    let before = conflicts(&servers);
    let mut tasks = JoinSet::new();
    for number in 0..PEOPLE {
        let doors = doors.clone();
        tasks.spawn(async move {
            let (one, other) = (format!("a{number}"), format!("b{number}"));
            [doors.join(number, &one).await, doors.join(number + 1, &other).await, doors.join(number + 2, &one).await]
        });
    }
    let (mut told, mut again) = (BTreeSet::new(), Vec::new());
    for [one, other, same] in tasks.join_all().await {
        assert!(one.seq < other.seq, "whoever was answered first came first");
        assert_eq!((same.seq, same.position), (one.seq, one.position), "the same again");
        told.extend([(one.seq, one.position), (other.seq, other.position)]);
        again.push(one.ticket);
    }
    let people = 2 * PEOPLE as u64;
    assert_eq!(told, (2..=people + 1).map(|seq| (seq, Some(seq))).collect(), "dense, and each exact");
    let met = conflicts(&servers) - before;
    eprintln!("{met} conflicts of {people} joins on {} servers", doors.0.len());
    assert_eq!(met, 0, "of {people} joins");
    servers.stop(&Universe::default()).await;
}

/// Joins, waits for its turn, goes in and out again; or leaves. What became of it.
async fn person(doors: Doors, number: usize) -> (u64, TicketState) {
    let ticket = doors.join(number, &format!("s{number}")).await;
    let (room, name) = (sale(), ticket.ticket.clone());
    if number % 6 == 5 {
        let left = doors.ask(number + 1, Leave { room, ticket: name }).await.expect("it may leave");
        return (left.seq, left.state);
    }
    let claim = Claim { room: sale(), ticket: name.clone() };
    loop {
        match doors.ask(number + 1, claim.clone()).await {
            Ok(claimed) => break assert_eq!(claimed.state, Admitted),
            Err(refusal) => assert_eq!(refusal.code(), Code::NotReady),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut claims = JoinSet::new();
    for other in 0..12 {
        let (doors, claim) = (doors.clone(), claim.clone());
        claims.spawn(async move { doors.ask(number + other, claim).await.expect("it is inside").jti() });
    }
    let admissions: BTreeSet<String> = claims.join_all().await.into_iter().collect();
    assert_eq!(admissions.len(), 1, "twelve claims, one admission");
    let done = doors.ask(number + 2, Finish { room, ticket: name }).await.expect("it is inside");
    (done.seq, done.state)
}

/// Looks at all tickets at one moment, again and again: nobody is let in before one who still waits, nor beyond the capacity.
async fn watch<E: Engine>(engine: Arc<E>, is_over: Arc<AtomicBool>) {
    let keys: Vec<Key> = (1..=PEOPLE as u64).map(|seq| ticket_key("sale", Seq::Given(seq))).collect();
    while !is_over.load(Ordering::SeqCst) {
        let loaded = engine.load(&Wants::rows(keys.clone())).await.expect("a load works");
        if loaded.of_one_moment {
            let tickets = (1..).zip(loaded.rows.iter().map(|row| row.as_ref().and_then(Row::ticket)));
            let states: Vec<(u64, TicketState)> =
                tickets.filter_map(|(seq, ticket)| Some((seq, ticket?.state))).collect();
            let inside: Vec<u64> = states.iter().filter(|(_, state)| state.is_inside()).map(|(seq, _)| *seq).collect();
            let waits = states.iter().find(|(_, state)| *state == Waiting).map_or(u64::MAX, |(seq, _)| *seq);
            assert!(inside.len() as i64 <= CAPACITY, "{inside:?} are inside");
            assert!(inside.iter().all(|seq| *seq < waits), "{inside:?} are inside, and {waits} waits");
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Says whether the line broke, and how many conflicts there were.
async fn crowd<F: EngineFactory>(stand: Stand<F>, at: Option<Break>) -> (bool, u64) {
    let settings = json!({"capacity": CAPACITY, "rate_per_s": 1_000_000, "one_ticket_per_subject": false});
    let (servers, doors) = make(stand, settings).await;
    let broken = servers.all[doors.0.len() - 1].line.clone();
    if let Some(at) = at {
        broken.break_after(at);
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let mut others = JoinSet::new();
    for number in 0..2 {
        // Two at once, as if neither knew that it has lost its lease.
        let (doors, is_over) = (doors.clone(), is_over.clone());
        others.spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                doors.ask(number, LetIn { rooms: vec![sale()] }).await.expect("what is due is not refused");
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        });
    }
    let engine = servers.engine(0).clone();
    others.spawn(watch(engine.clone(), is_over.clone()));
    let mut people = JoinSet::new();
    for number in 0..PEOPLE {
        people.spawn(person(doors.clone(), number));
    }
    let people = tokio::time::timeout(PATIENCE, people.join_all()).await.expect("everybody has had a turn");
    is_over.store(true, Ordering::SeqCst);
    others.join_all().await;
    let (has_broken, met) = (broken.is_broken(), conflicts(&servers));
    let mut seqs: Vec<u64> = people.iter().map(|(seq, _)| *seq).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=PEOPLE as u64).collect::<Vec<_>>(), "a ticket each, and no hole");
    assert_eq!(last(&*engine, "sale").await, PEOPLE as u64);
    let done = people.iter().filter(|(_, state)| *state == Done).count() as i64;
    let left = people.iter().filter(|(_, state)| *state == Left).count() as i64;
    assert_eq!(done + left, PEOPLE as i64);
    let totals = RoomCount::ALL.map(|count| count.of(&sale())).to_vec();
    let totals = engine.load(&Wants::totals(totals)).await.expect("a load works").totals;
    assert_eq!((totals[0], totals[1]), (0, 0), "nobody is inside");
    // Some of those who left were let in first.
    assert!((done..=done + left).contains(&totals[3]), "{} were let in, and {done} have been there", totals[3]);
    assert_eq!((totals[4], totals[5]), (left, 0), "left, and expired");
    drop((engine, broken, doors));
    servers.stop(&Universe::default()).await;
    (has_broken, met)
}

pub(super) async fn a_crowd_goes_in_and_out_in_order<F: EngineFactory>(stand: Stand<F>) {
    let (_, met) = crowd(stand, None).await;
    eprintln!("{met} conflicts while {PEOPLE} people went in and out");
}

pub(super) async fn a_server_that_ends_anywhere_takes_nobody_along<F: EngineFactory>(stand: Stand<F>) {
    let mut broken = 0;
    for round in 0..6 {
        let fault = if round % 2 == 0 { Fault::Before } else { Fault::After };
        let for_good = stand.servers() && round % 3 > 0;
        let at = Break { steps: 4 + round * 7, fault, for_good };
        broken += usize::from(crowd(stand.another(), Some(at)).await.0);
    }
    assert!(broken > 4, "only {broken} lines broke");
}

/// A server's clock is an hour off: nobody's time is over because of that, and nobody's is longer.
pub(super) async fn a_clock_that_is_wrong_changes_nothing<F: EngineFactory>(stand: Stand<F>) {
    if !stand.servers() {
        // One server, one clock: there is nothing to tell apart.
        return;
    }
    let (servers, doors) = make(stand, json!({"capacity": 9, "rate_per_s": 1000, "claim_ttl_ms": 60_000})).await;
    let time = async || {
        let now = servers.engine(0).load(&Wants::default()).await.expect("a load works").now;
        now.expect("a store that is shared tells the time").time().0
    };
    for number in 0..SERVERS {
        let before = time().await;
        let ticket = doors.join(number, &format!("s{number}")).await;
        let after = time().await + 1;
        assert!((before..=after).contains(&ticket.joined_at.0), "{ticket:?}, between {before} and {after}");
        let key = TicketKey { room: sale(), seq: Seq::Given(ticket.seq) };
        for other in 0..SERVERS {
            let expired = doors.ask(other, ExpireTickets { tickets: vec![key.clone()] }).await.expect("not refused");
            let let_in = doors.ask(other, LetIn { rooms: vec![sale()] }).await.expect("not refused");
            assert!(!expired.changed && !let_in.changed, "nothing is due because a server says so");
            let claim = Claim { room: sale(), ticket: ticket.ticket.clone() };
            assert_eq!(doors.ask(other, claim).await.expect("it is its turn").state, Admitted);
        }
    }
    drop(doors);
    servers.stop(&Universe::default()).await;
}
