//! How rooms and tickets begin and end: doors, deletion, forgetting, what is set and what is kept.

use serde_json::json;

use super::rows::Phase;
use super::tests::{Sale, states, subject};
use super::*;
use crate::Code;
use crate::command::{Command as Any, Forget};
use crate::reply::Reply;
use crate::rows::{Row, TicketState};
use crate::tests::world::World;
use crate::time::Timestamp;

use TicketState::{BeforeOpen, Left, Ready, Waiting};

#[test]
fn doors_open_for_those_who_came_in_the_order_in_which_they_came() {
    let opens = 60_000_000 + 10_000;
    let mut sale = Sale::new(json!({"opens_at": Timestamp(opens), "capacity": 1, "rate_per_s": 1000}));
    let early: Vec<_> = (0..3).map(|n| sale.join(&format!("s{n}"))).collect();
    assert!(early.iter().all(|ticket| ticket.state == BeforeOpen && ticket.position.is_none()));
    sale.wait(9_999);
    assert_eq!(sale.inside(), 0);
    sale.wait(1);
    let late = sale.join("late");
    assert_eq!((late.seq, late.state), (4, Waiting));
    sale.wait(100);
    assert_eq!(states(&mut sale, &early), [Ready, Waiting, Waiting]);
    assert_eq!(sale.beat(&late).unwrap().position, Some(3));
}

#[test]
fn a_shuffle_is_drawn_from_the_seed_and_everybody_can_check_it() {
    let opens = 60_000_000 + 10_000;
    let settings = json!({
        "opens_at": Timestamp(opens), "before_open": "shuffle", "capacity": 1, "rate_per_s": 1000, "mode": "hold",
    });
    let mut sale = Sale::new(settings);
    let early: Vec<_> = (0..700).map(|n| sale.join(&format!("s{n}"))).collect();
    sale.leave(&early[3]).unwrap();
    sale.wait(10_000);
    let late = sale.join("late");
    sale.wait(1_000);
    let mut stands: Vec<(u64, u64)> = Vec::new();
    for ticket in &early {
        let now = sale.beat(ticket).unwrap();
        stands.extend(now.position.map(|position| (position, ticket.seq)));
    }
    stands.sort_unstable();
    let mut drawn: Vec<u64> = (1..=700).filter(|seq| *seq != 4).collect();
    drawn.sort_by_key(|seq| shuffle::place("seed", 700, *seq));
    assert_eq!(stands.iter().map(|(_, seq)| *seq).collect::<Vec<_>>(), drawn);
    assert_eq!(stands.iter().map(|(position, _)| *position).collect::<Vec<_>>(), (1..=699).collect::<Vec<_>>());
    assert_eq!(sale.beat(&late).unwrap().position, Some(700), "then everyone by arrival");
    let admitted = sale.ask(Admit { room: super::tests::sale(), count: 1 }).unwrap();
    assert_eq!(admitted.admitted, 1);
    let first = early.iter().find(|ticket| ticket.seq == drawn[0]).unwrap();
    assert_eq!(sale.state(first), Ready);
}

#[test]
fn a_ticket_that_is_over_is_told_for_a_while_and_then_forgotten() {
    let mut sale = Sale::new(json!({"mode": "hold", "dedupe_ttl_ms": 1_000}));
    let ticket = sale.join_as(Some("ann"), Some("t")).unwrap();
    sale.leave(&ticket).unwrap();
    sale.wait(999);
    assert_eq!(sale.state(&ticket), Left);
    sale.wait(1);
    assert_eq!(sale.beat(&ticket).unwrap_err().code(), Code::TicketNotFound);
    let again = sale.join_as(Some("ann"), Some("t")).unwrap();
    assert_eq!(again.seq, 2, "a new place");
    assert_eq!(
        sale.beat(&TicketReply { ticket: "2-AAAAAAAAAAAAAAAAAAAAAA".into(), ..again }).unwrap_err().code(),
        Code::TicketNotFound
    );
}

#[test]
fn a_room_that_is_deleted_leaves_nothing_but_its_numbers() {
    let mut sale = Sale::new(json!({"capacity": 2}));
    let tickets: Vec<_> = (0..5).map(|n| sale.join(&format!("s{n}"))).collect();
    sale.ask(DeleteRoom { room: super::tests::sale() }).unwrap();
    assert_eq!(sale.join_as(Some("x"), None).unwrap_err().code(), Code::RoomNotFound);
    sale.wait(1_000);
    let left: Vec<_> = sale.world.rows.keys().filter(|key| !matches!(key, Key::Sequence(_) | Key::Names)).collect();
    assert!(left.is_empty(), "{left:?}");
    sale.put(json!({})).unwrap();
    assert_eq!(sale.beat(&tickets[0]).unwrap_err().code(), Code::TicketNotFound);
    assert_eq!((sale.join("new").seq, sale.inside()), (6, 1));
}

#[test]
fn who_is_forgotten_has_no_ticket_and_holds_no_place() {
    let mut sale = Sale::new(json!({"capacity": 1, "one_ticket_per_subject": false}));
    let inside = sale.join("ann");
    let waits = sale.join_as(Some("ann"), Some("t")).unwrap();
    let bob = sale.join("bob");
    assert_eq!(bob.position, Some(2));
    let reply = sale.world.apply(Any::from(Forget { subject: subject("ann") }), None).reply.unwrap();
    assert!(matches!(reply, Reply::Job(_)));
    assert_eq!(sale.beat(&inside).unwrap_err().code(), Code::TicketNotFound);
    assert_eq!(sale.beat(&waits).unwrap_err().code(), Code::TicketNotFound);
    sale.wait(1_000);
    assert_eq!(sale.state(&bob), Ready);
    let of_ann = |row: &&Row| row.ticket().is_some_and(|ticket| ticket.subject == subject("ann"));
    assert_eq!(sale.world.rows.values().filter(of_ann).count(), 0);
}

#[test]
fn what_cannot_be_set_is_said() {
    let mut sale = Sale::new(json!({}));
    for wrong in [
        json!({"capacity": 0}),
        json!({"idle_ttl_ms": 1}),
        json!({"bypass": "no condition("}),
        json!({"rate_limit": "5/min per planet"}),
        json!({"return_hosts": ["https://shop.example/"]}),
        json!({"opens_at": "2030-01-01T00:00:00Z", "closes_at": "2029-01-01T00:00:00Z"}),
    ] {
        assert_eq!(sale.put(wrong.clone()).unwrap_err().code(), Code::BadRequest, "{wrong}");
    }
    assert!(serde_json::from_value::<RoomSettings>(json!({"rate": 1})).is_err());
    assert!(serde_json::from_value::<RoomSettings>(json!({"rate_per_s": 0})).is_err());
}

#[test]
fn what_the_configuration_says_stands_until_it_says_something_else() {
    let mut sale = Sale { world: World::new() };
    let declare = |capacity: u64| PutRoom {
        room: super::tests::sale(),
        settings: RoomSettings { capacity, ..RoomSettings::default() },
        fresh: ["a".into(), "b".into()],
        declared: true,
    };
    assert!(sale.ask(declare(5)).unwrap().created);
    sale.put(json!({"capacity": 7})).unwrap();
    assert_eq!(sale.ask(declare(5)).unwrap().settings.capacity, 7, "it said so before");
    assert_eq!(sale.ask(declare(6)).unwrap().settings.capacity, 6);
}

#[test]
fn minutes_are_kept() {
    let mut sale = Sale::new(json!({"capacity": 2, "rate_per_s": 1000}));
    let tickets: Vec<_> = (0..4).map(|n| sale.join(&format!("s{n}"))).collect();
    sale.leave(&tickets[3]).unwrap();
    sale.wait(60_000);
    let minutes: Vec<_> = sale.world.rows.values().filter_map(Row::minute).copied().collect();
    assert_eq!(minutes.len(), 1);
    assert_eq!((minutes[0].admitted, minutes[0].left), (2, 1));
    assert!(sale.world.rows.values().any(|row| row.room().is_some_and(|room| room.phase == Phase::Open)));
}
