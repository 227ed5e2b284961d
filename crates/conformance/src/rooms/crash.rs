//! A fault at each step of a room's history, and callers that try again: no ticket is lost, and nobody is admitted twice.

use std::sync::Arc;

use serde_json::json;
use tally_core::Command;
use tally_core::reply::{Reply, TicketReply};
use tally_core::room::rows::RoomCount;
use tally_core::room::{Claim, Finish, Leave, LetIn};
use tally_core::rows::TicketState::{Admitted, Done, Left};
use tally_core::rows::{Row, Seq};
use tally_core::view::Wants;
use tally_engine::Engine;
use tally_engine::clock::ManualClock;
use tally_engine::faulty::{Fault, Faulty};

use super::hall::{joining, put, sale};
use crate::EngineFactory;
use crate::auditor::findings;
use crate::joins::{last, ticket_key};
use crate::running::Running;
use crate::sample::catalog;
use crate::stand::Stand;

/// Asks until there is an answer.
async fn sure(running: &Running, command: impl Into<Command>) -> Reply {
    let command = command.into();
    loop {
        if let Ok(decided) = running.apply(command.clone()).await {
            return decided.reply.expect("nothing here is to be refused");
        }
    }
}

async fn ticket(running: &Running, command: impl Into<Command>) -> TicketReply {
    TicketReply::try_from(sure(running, command).await).unwrap_or_else(|_| panic!("it is answered by a ticket"))
}

/// Says whether it came to the fault.
async fn fails_at<F: EngineFactory>(stand: &Stand<F>, step: u32, fault: Fault) -> bool {
    let engine = stand.open().await;
    let faulty = Arc::new(Faulty::new(engine.clone(), step, fault));
    let running = Running::start(&faulty, &catalog(), ManualClock::at(1_000)).await;
    sure(&running, put(&json!({"capacity": 2, "rate_per_s": 1_000_000}))).await;
    let mut names = Vec::new();
    for (number, who) in (1..).zip(["ann", "bob", "cid", "dan"]) {
        let joined = ticket(&running, joining(who, Some("a token"))).await;
        let position = if number > 2 { Some(number - 2) } else { None };
        assert_eq!((joined.seq, joined.position), (number, position), "{fault:?} at step {step}");
        names.push(joined.ticket);
    }
    let claim = |ticket: &String| Claim { room: sale(), ticket: ticket.clone() };
    let admission = ticket(&running, claim(&names[0])).await.jti();
    ticket(&running, Leave { room: sale(), ticket: names[3].clone() }).await;
    assert_eq!(ticket(&running, claim(&names[0])).await.jti(), admission, "{fault:?} at step {step}");
    ticket(&running, Finish { room: sale(), ticket: names[0].clone() }).await;
    for _ in 0..2 {
        sure(&running, LetIn { rooms: vec![sale()] }).await;
    }
    for name in &names[1..3] {
        ticket(&running, claim(name)).await;
    }
    running.stop().await;
    let has_failed = faulty.has_failed();
    drop(faulty);
    let engine = stand.reopen(engine).await;
    stand.drain(&engine).await;
    assert_eq!(last(&*engine, "sale").await, 4, "{fault:?} at step {step}");
    let rows = (1..=4).map(|seq| ticket_key("sale", Seq::Given(seq))).collect();
    let totals = [RoomCount::Inside, RoomCount::Admitted, RoomCount::Left].map(|count| count.of(&sale())).to_vec();
    let found = engine.load(&Wants { rows, totals, ..Wants::default() }).await.expect("a load works");
    let states = found.rows.iter().map(|row| row.as_ref().and_then(Row::ticket).map(|ticket| ticket.state));
    let expected = [Done, Admitted, Admitted, Left].map(Some);
    assert_eq!(states.collect::<Vec<_>>(), expected, "{fault:?} at step {step}");
    assert_eq!(found.totals, [2, 3, 1], "inside, let in and left; {fault:?} at step {step}");
    assert_eq!(findings(&*engine).await, Vec::<String>::new(), "{fault:?} at step {step}");
    has_failed
}

async fn at_every_step<F: EngineFactory>(stand: Stand<F>, fault: Fault) {
    let mut step = 0;
    while fails_at(&stand.another(), step, fault).await {
        step += 1;
    }
    assert!(step > 25, "a history of {step} steps proves little");
}

pub(super) async fn refused_at_every_step_of_a_room<F: EngineFactory>(stand: Stand<F>) {
    at_every_step(stand, Fault::Before).await;
}

pub(super) async fn answer_lost_at_every_step_of_a_room<F: EngineFactory>(stand: Stand<F>) {
    at_every_step(stand, Fault::After).await;
}
