//! Two decisions on one room, and only then their commits: what the second one stands on has moved.

use serde_json::json;
use tally_core::room::{Claim, LetIn};
use tally_core::rows::TicketState::{Expired, Ready, Waiting};
use tally_engine::CommitError;

use super::hall::{Hall, joining, sale};
use crate::EngineFactory;
use crate::stand::Stand;

/// Whoever joins a room whose gate is awake leaves the gate alone. If it has gone to sleep since, nobody would look.
pub(super) async fn who_joins_while_the_gate_falls_asleep_wakes_it<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"capacity": 10, "rate_per_s": 1})).await;
    hall.joins("ann").await;
    let bob = hall.joins("bob").await;
    assert_eq!(bob.state, Waiting, "the gate is awake");
    hall.leave(&bob.ticket).await.expect("it may leave");
    let late = hall.draft(joining("cid", None)).await;
    hall.wait(1_000).await;
    assert_eq!(late.commit(&*engine).await.map(|_| ()), Err(CommitError::Conflict), "the gate sleeps by now");
    let cid = hall.joins("cid").await;
    assert_eq!((cid.seq, cid.state), (3, Ready), "an empty room with budget and capacity");
}

/// Two servers let in at once, each in its own way.
pub(super) async fn what_is_let_in_twice_at_once_does_not_pass_the_capacity<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"capacity": 1, "rate_per_s": 1000})).await;
    let inside = hall.joins("ann").await;
    let bob = hall.joins("bob").await;
    hall.joins("cid").await;
    // So far back that the gate does not look at it.
    let dan = hall.joins("dan").await;
    hall.finish(&inside.ticket).await.expect("it is inside");
    let gate = LetIn { rooms: vec![sale()] };
    let (one, other) = (hall.draft(gate.clone()).await, hall.draft(gate).await);
    assert!(!one.changes.is_empty() && !other.changes.is_empty(), "there is place for one");
    // Somebody is let in past the queue in between.
    assert_eq!(hall.usher(dan.seq).await.expect("the ticket is there").state, Ready);
    assert_eq!(one.commit(&*engine).await.map(|_| ()), Err(CommitError::Conflict), "the place is taken");
    hall.wait(100).await;
    assert_eq!(hall.state(&bob.ticket).await, Waiting);
    hall.finish(&dan.ticket).await.expect("it is inside");
    hall.wait(100).await;
    assert_eq!(hall.state(&bob.ticket).await, Ready);
    assert_eq!(other.commit(&*engine).await.map(|_| ()), Err(CommitError::Conflict), "it is done already");
}

/// A claim that comes at the last moment, and whoever gives the ticket up then: one of them has it.
pub(super) async fn a_ticket_that_is_given_up_meanwhile_is_not_claimed<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"capacity": 1, "rate_per_s": 1000, "claim_ttl_ms": 5_000})).await;
    let (ann, bob) = (hall.joins("ann").await, hall.joins("bob").await);
    hall.wait(4_999).await;
    let claim = hall.draft(Claim { room: sale(), ticket: ann.ticket.clone() }).await;
    hall.wait(100).await;
    assert_eq!(hall.states(&[ann, bob]).await, [Expired, Ready]);
    assert_eq!(claim.commit(&*engine).await.map(|_| ()), Err(CommitError::Conflict), "it is another's place by now");
}

/// There is budget by now, and nobody has looked yet: whoever comes stands behind whoever waits.
pub(super) async fn nobody_goes_past_who_waits_while_the_worker_is_late<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"capacity": 10, "rate_per_s": 1})).await;
    let (ann, bob) = (hall.joins("ann").await, hall.joins("bob").await);
    assert_eq!((ann.state, bob.state), (Ready, Waiting));
    hall.now += 5_000;
    let cid = hall.joins("cid").await;
    assert_eq!((cid.state, cid.position), (Waiting, Some(2)));
    hall.wait(0).await;
    assert_eq!(hall.states(&[bob, cid]).await, [Ready, Waiting], "a burst of one second is one");
}
