//! Rooms, by a clock that is moved by hand.

use std::sync::Arc;

use serde_json::json;

use super::rows::RoomCount;
use super::*;
use crate::Code;
use crate::error::Refusal;
use crate::rows::TicketState;
use crate::tests::world::World;

pub(super) struct Sale {
    pub(super) world: World,
}

pub(super) fn sale() -> Name {
    Name::new("sale").unwrap()
}

pub(super) fn subject(text: &str) -> SubjectId {
    SubjectId::new(text).unwrap()
}

impl Sale {
    pub(super) fn new(settings: serde_json::Value) -> Self {
        let mut sale = Self { world: World::new() };
        sale.world.now_ms = 60_000_000;
        sale.put(settings).unwrap();
        sale
    }

    pub(super) fn ask<O: Operation>(&mut self, operation: O) -> Result<O::Reply, Refusal> {
        let reply = self.world.apply(operation.into(), None).reply?;
        Ok(O::Reply::try_from(reply).unwrap_or_else(|_| panic!("it is answered by its reply")))
    }

    pub(super) fn put(&mut self, settings: serde_json::Value) -> Result<RoomReply, Refusal> {
        let settings = serde_json::from_value(settings).unwrap();
        let fresh = ["secret".to_owned(), "seed".to_owned()];
        self.ask(PutRoom { room: sale(), settings, fresh, declared: false })
    }

    pub(super) fn join_as(&mut self, who: Option<&str>, token: Option<&str>) -> Result<TicketReply, Refusal> {
        let (subject, token) = (who.map(subject), token.map(str::to_owned));
        self.ask(Join { room: sale(), subject, token, fresh: "fresh".into(), ip: Some("192.0.2.1".into()) })
    }

    pub(super) fn join(&mut self, who: &str) -> TicketReply {
        self.join_as(Some(who), None).unwrap()
    }

    /// Does what is due, as the worker does, until nothing is.
    pub(super) fn wait(&mut self, ms: u64) {
        let until = self.world.now_ms + ms;
        for _ in 0..100_000 {
            let due = self.world.rows.iter().filter_map(|(key, row)| Some((row.due()?, key.clone())));
            // Jobs that are open are somebody else's work.
            let Some((at, key)) = due.filter(|(at, _)| (1..=until).contains(&at.0)).min() else { break };
            self.world.now_ms = self.world.now_ms.max(at.0);
            let settling = crate::due::settling(key.kind()).unwrap();
            self.world.apply((settling.command)(vec![key]), None).reply.unwrap();
        }
        self.world.now_ms = until;
    }

    pub(super) fn state(&mut self, ticket: &TicketReply) -> TicketState {
        self.beat(ticket).map(|ticket| ticket.state).unwrap_or(TicketState::Expired)
    }

    pub(super) fn beat(&mut self, ticket: &TicketReply) -> Result<TicketReply, Refusal> {
        self.ask(Beat { room: sale(), ticket: ticket.ticket.clone() })
    }

    pub(super) fn claim(&mut self, ticket: &TicketReply) -> Result<TicketReply, Refusal> {
        self.ask(Claim { room: sale(), ticket: ticket.ticket.clone() })
    }

    pub(super) fn finish(&mut self, ticket: &TicketReply) -> Result<TicketReply, Refusal> {
        self.ask(Finish { room: sale(), ticket: ticket.ticket.clone() })
    }

    pub(super) fn leave(&mut self, ticket: &TicketReply) -> Result<TicketReply, Refusal> {
        self.ask(Leave { room: sale(), ticket: ticket.ticket.clone() })
    }

    pub(super) fn inside(&self) -> i64 {
        self.world.total(&RoomCount::Inside.of(&sale()))
    }

    pub(super) fn is(&mut self, auth: serde_json::Value) {
        self.world.auth = Arc::new(auth);
    }
}

pub(super) fn states(sale: &mut Sale, tickets: &[TicketReply]) -> Vec<TicketState> {
    tickets.iter().map(|ticket| sale.state(ticket)).collect()
}

use TicketState::{Admitted, Done as Finished, Expired, Left, Ready, Waiting};

#[test]
fn who_comes_into_an_empty_room_is_ready_at_once_and_others_wait_in_order() {
    let mut sale = Sale::new(json!({"capacity": 2, "rate_per_s": 100}));
    let tickets: Vec<_> = ["ann", "bob", "cid", "dan"].map(|who| sale.join(who)).into();
    let told: Vec<_> = tickets.iter().map(|ticket| (ticket.seq, ticket.state, ticket.position)).collect();
    assert_eq!(told, [(1, Ready, None), (2, Ready, None), (3, Waiting, Some(1)), (4, Waiting, Some(2))]);
    sale.wait(1_000);
    assert_eq!(states(&mut sale, &tickets), [Ready, Ready, Waiting, Waiting], "capacity holds");
    sale.claim(&tickets[0]).unwrap();
    sale.finish(&tickets[0]).unwrap();
    sale.wait(100);
    assert_eq!(states(&mut sale, &tickets), [Finished, Ready, Ready, Waiting]);
    assert_eq!(sale.beat(&tickets[3]).unwrap().position, Some(1), "positions fall");
}

#[test]
fn the_rate_holds_with_a_burst_of_one_second() {
    let mut sale = Sale::new(json!({"capacity": 1000, "rate_per_s": 2}));
    let tickets: Vec<_> = (0..20).map(|n| sale.join(&format!("s{n}"))).collect();
    let inside = |sale: &Sale| sale.inside();
    assert_eq!(inside(&sale), 2);
    for (after, most) in [(1_000, 4), (500, 5), (500, 6), (4_000, 14)] {
        sale.wait(after);
        assert_eq!(inside(&sale), most);
    }
    let order = states(&mut sale, &tickets);
    assert_eq!(order, [[Ready; 14].as_slice(), &[Waiting; 6]].concat(), "in the order of their numbers");
}

#[test]
fn fractions_of_a_rate_are_kept() {
    let mut sale = Sale::new(json!({"capacity": 1000, "rate_per_s": 0.5}));
    (0..5).for_each(|n| _ = sale.join(&format!("s{n}")));
    assert_eq!(sale.inside(), 1);
    sale.wait(1_999);
    assert_eq!(sale.inside(), 1);
    sale.wait(1);
    assert_eq!(sale.inside(), 2);
}

#[test]
fn joining_again_is_the_same_ticket() {
    let mut sale = Sale::new(json!({"mode": "hold", "one_ticket_per_subject": false}));
    let first = sale.join_as(Some("ann"), Some("a")).unwrap();
    let second = sale.join_as(Some("ann"), Some("b")).unwrap();
    let again = sale.join_as(Some("ann"), Some("a")).unwrap();
    assert_eq!((first.seq, second.seq, again.seq), (1, 2, 1));
    assert_eq!(again.ticket, first.ticket);
    assert_eq!(first.position, Some(1));
    assert_eq!(second.position, Some(2), "several of one subject stand in order");
    sale.leave(&first).unwrap();
    let over = sale.join_as(Some("ann"), Some("a")).unwrap();
    assert_eq!((over.state, over.seq), (Left, 1), "a repeat is never an error without a ticket");
}

#[test]
fn one_ticket_per_subject_and_only_for_whoever_may_have_it() {
    let mut sale = Sale::new(json!({"mode": "hold", "join": "any"}));
    let ticket = sale.join_as(Some("ann"), Some("hers")).unwrap();
    assert_eq!(sale.join("ann").ticket, ticket.ticket, "a server may have it");
    sale.is(json!({"kind": "user", "subject": "ann"}));
    assert_eq!(sale.join("ann").ticket, ticket.ticket, "she may have it");
    assert_eq!(sale.join_as(Some("bob"), None).unwrap_err().code(), Code::Forbidden);
    sale.is(json!(null));
    let stranger = sale.join_as(Some("ann"), Some("another")).unwrap();
    assert_ne!(stranger.ticket, ticket.ticket);
    assert_ne!(stranger.subject, ticket.subject, "nobody gets another's ticket by naming them");
    assert_eq!(sale.join_as(Some("ann"), Some("hers")).unwrap().ticket, ticket.ticket, "whoever has the token may");
    assert_eq!(sale.join_as(None, Some("another")).unwrap().ticket, stranger.ticket);
}

#[test]
fn who_may_join_is_the_rooms_to_say() {
    let mut sale = Sale::new(json!({"mode": "hold", "join": "token"}));
    sale.is(json!(null));
    assert_eq!(sale.join_as(Some("ann"), None).unwrap_err().code(), Code::Unauthenticated);
    sale.is(json!({"kind": "user", "subject": "ann"}));
    let ticket = sale.join("ann");
    sale.is(json!({"kind": "system"}));
    sale.put(json!({"mode": "auto", "join": "token"})).unwrap();
    sale.wait(1_000);
    sale.is(json!(null));
    assert_eq!(sale.claim(&ticket).unwrap_err().code(), Code::Unauthenticated);
    sale.is(json!({"kind": "user", "subject": "bob"}));
    assert_eq!(sale.claim(&ticket).unwrap_err().code(), Code::Forbidden);
    sale.is(json!({"kind": "user", "subject": "ann"}));
    assert_eq!(sale.claim(&ticket).unwrap().state, Admitted);
    sale.is(json!({"kind": "system"}));
    sale.put(json!({"join": "service"})).unwrap();
    sale.is(json!({"kind": "user", "subject": "cid"}));
    assert_eq!(sale.join_as(Some("cid"), None).unwrap_err().code(), Code::Forbidden);
}

#[test]
fn a_claim_is_one_admission_however_often() {
    let mut sale = Sale::new(json!({"capacity": 1, "claim_ttl_ms": 5_000, "admission_ttl_ms": 10_000}));
    let (ann, bob) = (sale.join("ann"), sale.join("bob"));
    assert_eq!(sale.claim(&bob).unwrap_err().code(), Code::NotReady);
    let first = sale.claim(&ann).unwrap();
    sale.wait(1_000);
    let again = sale.claim(&ann).unwrap();
    assert_eq!(
        (first.jti(), first.facts.since, first.facts.until),
        (again.jti(), again.facts.since, again.facts.until)
    );
    assert_eq!(sale.inside(), 1);
    sale.wait(9_000);
    assert_eq!(sale.claim(&ann).unwrap_err().code(), Code::TicketGone, "an admission ends");
    sale.wait(0);
    assert_eq!(sale.state(&bob), Ready, "and makes place");
    sale.wait(5_000);
    assert_eq!(sale.claim(&bob).unwrap_err().code(), Code::TicketGone, "one that is not claimed goes");
    assert_eq!(sale.inside(), 0);
}

#[test]
fn ghosts_never_hold_the_head() {
    let settings = json!({"capacity": 2, "rate_per_s": 1000, "idle_ttl_ms": 10_000, "mode": "hold"});
    let mut sale = Sale::new(settings);
    let ghosts: Vec<_> = (0..30).map(|n| sale.join(&format!("ghost{n}"))).collect();
    let living: Vec<_> = (0..3).map(|n| sale.join(&format!("alive{n}"))).collect();
    for _ in 0..3 {
        sale.wait(6_000);
        living.iter().for_each(|ticket| _ = sale.beat(ticket).unwrap());
    }
    let positions: Vec<_> = living.iter().map(|ticket| sale.beat(ticket).unwrap().position).collect();
    assert_eq!(positions, [Some(1), Some(2), Some(3)]);
    assert!(states(&mut sale, &ghosts).iter().all(|state| *state == Expired));
    sale.put(json!({"capacity": 2, "rate_per_s": 1000, "idle_ttl_ms": 10_000})).unwrap();
    sale.wait(100);
    assert_eq!(states(&mut sale, &living), [Ready, Ready, Waiting], "in order");
}

#[test]
fn a_heartbeat_is_written_only_when_half_of_the_time_is_over() {
    let mut sale = Sale::new(json!({"mode": "hold", "idle_ttl_ms": 10_000}));
    let ticket = sale.join("ann");
    let row = |sale: &Sale| sale.world.rows.values().find_map(|row| row.ticket().map(|ticket| ticket.due_at)).unwrap();
    let before = row(&sale);
    sale.wait(4_999);
    sale.beat(&ticket).unwrap();
    assert_eq!(row(&sale), before);
    sale.wait(1);
    sale.beat(&ticket).unwrap();
    assert_eq!(row(&sale), before.plus_ms(5_000));
}

#[test]
fn modes() {
    let mut sale = Sale::new(json!({"mode": "drain"}));
    assert_eq!(sale.join_as(Some("ann"), None).unwrap_err().code(), Code::RoomClosed);
    sale.put(json!({"mode": "reject"})).unwrap();
    assert_eq!(sale.join_as(Some("ann"), None).unwrap_err().code(), Code::RoomClosed);
    assert_eq!(sale.ask(Admit { room: super::tests::sale(), count: 1 }).unwrap_err().code(), Code::Conflict);
    sale.put(json!({"mode": "hold"})).unwrap();
    let tickets: Vec<_> = (0..4).map(|n| sale.join(&format!("s{n}"))).collect();
    sale.wait(5_000);
    assert_eq!(sale.inside(), 0, "nobody in");
    assert_eq!(sale.ask(Admit { room: super::tests::sale(), count: 2 }).unwrap().admitted, 2, "but by hand");
    assert_eq!(states(&mut sale, &tickets), [Ready, Ready, Waiting, Waiting]);
    sale.put(json!({"mode": "off", "capacity": 1})).unwrap();
    sale.wait(100);
    assert_eq!(states(&mut sale, &tickets), [Ready; 4], "everybody straight in");
    assert_eq!(sale.join("late").state, Ready);
}

#[test]
fn by_hand_goes_beyond_the_rate_and_not_beyond_the_capacity() {
    let mut sale = Sale::new(json!({"rate_per_s": 0.001, "capacity": 3}));
    (0..6).for_each(|n| _ = sale.join(&format!("s{n}")));
    assert_eq!(sale.inside(), 1);
    let admitted = sale.ask(Admit { room: super::tests::sale(), count: 10 }).unwrap();
    assert_eq!((admitted.admitted, admitted.inside, admitted.capacity_left), (2, 3, 0));
}

#[test]
fn a_condition_lets_some_straight_in_within_the_capacity() {
    let mut sale = Sale::new(json!({"mode": "hold", "capacity": 1, "bypass": "auth.claims.staff == true"}));
    sale.join("ann");
    sale.is(json!({"kind": "user", "subject": "ann", "claims": {}}));
    sale.is(json!({"kind": "system", "claims": {"staff": true}}));
    let staff = sale.join("bob");
    assert_eq!((staff.state, staff.facts.goes_straight_in), (Waiting, true));
    let staff = sale.ask(Usher { room: super::tests::sale(), seq: staff.seq }).unwrap();
    assert_eq!(staff.state, Ready);
    let more = sale.join("cid");
    assert_eq!(sale.ask(Usher { room: super::tests::sale(), seq: more.seq }).unwrap().state, Waiting);
}

#[test]
fn joining_passes_a_limit() {
    let mut sale = Sale::new(json!({"rate_limit": "2/min per ip", "one_ticket_per_subject": false, "mode": "hold"}));
    sale.join("ann");
    let kept = sale.join_as(Some("bob"), Some("t")).unwrap();
    assert_eq!(sale.join_as(Some("cid"), None).unwrap_err().code(), Code::RateLimited);
    assert_eq!(sale.join_as(Some("bob"), Some("t")).unwrap().ticket, kept.ticket, "a repeat passes");
}

/// However many they are: a gate that asked for them one by one would be given up, and with it everybody behind them.
#[test]
fn those_who_left_at_the_head_hold_nobody_up_in_few_loads() {
    let mut sale = Sale::new(json!({"capacity": 1, "rate_per_s": 1000}));
    let inside = sale.join("first");
    let gone: Vec<_> = (0..700).map(|n| sale.join(&format!("s{n}"))).collect();
    let next = sale.join("next");
    gone.iter().for_each(|ticket| _ = sale.leave(ticket).unwrap());
    sale.finish(&inside).unwrap();
    sale.ask(LetIn { rooms: vec![super::tests::sale()] }).unwrap();
    assert!(sale.world.loads < 16, "{} loads", sale.world.loads);
    assert_eq!(sale.state(&next), Ready);
}
