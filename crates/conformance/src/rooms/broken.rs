//! What was found broken in a real system of this kind, one by one.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use tally_core::Code;
use tally_core::room::Join;
use tally_core::rows::TicketState::{Admitted, Expired, Ready, Waiting};
use tally_core::rows::{Key, RowKind, Seq};
use tally_core::view::Wants;
use tally_engine::{Engine, OrderFrom, Range};

use super::hall::{Hall, sale};
use crate::EngineFactory;
use crate::counting::lockstep::all_rows;
use crate::joins::{queue_order, ticket_key};
use crate::sample::subject;
use crate::stand::Stand;

/// Positions that never fall because the index is not cleaned.
pub(super) async fn positions_fall_as_those_ahead_go<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"mode": "hold", "idle_ttl_ms": 10_000, "capacity": 2})).await;
    let mut tickets = Vec::new();
    for number in 0..8 {
        tickets.push(hall.joins(&format!("s{number}")).await);
    }
    let last = tickets[7].ticket.clone();
    let mut told = vec![hall.ticket(&last).await.expect("it waits")];
    hall.leave(&tickets[0].ticket).await.expect("it may leave");
    told.push(hall.ticket(&last).await.expect("it waits"));
    hall.admit(2).await.expect("two may go in");
    told.push(hall.ticket(&last).await.expect("it waits"));
    hall.wait(6_000).await;
    hall.beat(&last).await.expect("it waits");
    hall.beat(&tickets[6].ticket).await.expect("it waits");
    hall.wait(6_000).await;
    told.push(hall.ticket(&last).await.expect("it waits"));
    let positions: Vec<_> = told.iter().map(|ticket| ticket.position).collect();
    assert_eq!(positions, [Some(8), Some(7), Some(5), Some(2)]);
    assert!(told.windows(2).all(|pair| pair[0].version < pair[1].version), "each with a later version");
    let range = Range::Order { order: queue_order("sale"), from: OrderFrom::Rank(0) };
    let page = engine.scan(&range, 100).await.expect("a scan works").items;
    let stands: Vec<Key> = page.into_iter().map(|(key, _)| key).collect();
    assert_eq!(stands, [7, 8].map(|seq| ticket_key("sale", Seq::Given(seq))), "nobody else stands there any more");
}

/// A hundred ghosts at the head that deadlock the event.
pub(super) async fn a_hundred_ghosts_do_not_hold_the_head<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let settings =
        json!({"capacity": 3, "rate_per_s": 1000, "idle_ttl_ms": 10_000, "claim_ttl_ms": 4_000, "mode": "hold"});
    let mut hall = Hall::new(&*engine, settings.clone()).await;
    for number in 0..100 {
        hall.joins(&format!("ghost{number}")).await;
    }
    let mut living = Vec::new();
    for number in 0..5 {
        living.push(hall.joins(&format!("alive{number}")).await);
    }
    hall.wait(6_000).await;
    for ticket in &living {
        assert_eq!(hall.beat(&ticket.ticket).await.expect("it waits").state, Waiting);
    }
    let mut open = settings;
    open["mode"] = json!("auto");
    hall.put(open).await.expect("it can be opened");
    // Three ghosts are let in and do not claim it; the others are given up where they stand.
    hall.wait(4_000).await;
    assert_eq!(hall.states(&living).await, [Ready, Ready, Ready, Waiting, Waiting], "those who are there, in order");
    for ticket in &living[..3] {
        hall.claim(&ticket.ticket).await.expect("it is its turn");
        hall.finish(&ticket.ticket).await.expect("it is inside");
    }
    hall.wait(100).await;
    assert_eq!(hall.states(&living[3..]).await, [Ready, Ready]);
}

/// A bypass for the first ten that voids the rate.
pub(super) async fn the_head_of_the_queue_has_no_shortcut<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"capacity": 1000, "rate_per_s": 2})).await;
    let mut tickets = Vec::new();
    for number in 0..20 {
        tickets.push(hall.joins(&format!("s{number}")).await);
        // Asking does not help either.
        for ticket in &tickets {
            hall.beat(&ticket.ticket).await.expect("it is there");
        }
    }
    for (after_ms, expected) in [(0, 2), (1_000, 4), (1_000, 6), (500, 7)] {
        hall.wait(after_ms).await;
        let states = hall.states(&tickets).await;
        assert_eq!(states, [vec![Ready; expected], vec![Waiting; 20 - expected]].concat());
    }
}

/// Two concurrent claims minting two admissions.
pub(super) async fn twelve_claims_are_one_admission<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"capacity": 5})).await;
    let ticket = hall.joins("ann").await.ticket;
    let mut admissions = BTreeSet::new();
    for _ in 0..12 {
        hall.wait(100).await;
        let claimed = hall.claim(&ticket).await.expect("it is its turn");
        assert_eq!(claimed.state, Admitted);
        admissions.insert((claimed.jti(), claimed.facts.since, claimed.facts.until));
    }
    assert_eq!(admissions.len(), 1, "{admissions:?}");
    let other = hall.joins("bob").await.ticket;
    assert_ne!(hall.claim(&other).await.expect("it is its turn").jti(), admissions.first().expect("one").0);
}

/// Second-granular scores ordering ties at random; a float score that loses its low digits.
pub(super) async fn who_joins_in_one_millisecond_stands_in_order<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let sequence = tally_core::room::rows::queue(&sale()).key();
    let many = 1 << 52;
    crate::driver::write(&*engine, [(sequence, Some(tally_core::rows::Row::Sequence(many)))], []).await;
    let settings = json!({"capacity": 3, "rate_per_s": 1000, "mode": "hold", "one_ticket_per_subject": false});
    let mut hall = Hall::new(&*engine, settings).await;
    let mut tickets = Vec::new();
    for number in 0..12_u64 {
        // Names in no order, and one subject several times.
        let who = format!("s{}", number * 7 % 4);
        let ticket = hall.join(&who, Some(&format!("t{number}"))).await.expect("it may join");
        assert_eq!((ticket.seq, ticket.position), (many + number + 1, Some(number + 1)));
        tickets.push(ticket);
    }
    hall.admit(3).await.expect("three may go in");
    assert_eq!(hall.states(&tickets).await, [vec![Ready; 3], vec![Waiting; 9]].concat());
    for (number, ticket) in (1..).zip(&tickets[3..]) {
        assert_eq!(hall.ticket(&ticket.ticket).await.expect("it waits").position, Some(number));
    }
}

/// A stream per user that leaks: what a ticket leaves behind is gone in the end.
pub(super) async fn nothing_is_left_of_who_has_been_there<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let settings = json!({
        "capacity": 2, "rate_per_s": 1000, "idle_ttl_ms": 5_000, "claim_ttl_ms": 5_000, "admission_ttl_ms": 5_000,
        "dedupe_ttl_ms": 5_000,
    });
    let mut hall = Hall::new(&*engine, settings).await;
    for number in 0..12 {
        let ticket = hall.join(&format!("s{number}"), Some("a token")).await.expect("it may join");
        if number % 3 == 0 && ticket.state == Waiting {
            hall.leave(&ticket.ticket).await.expect("it may leave");
        }
    }
    hall.wait(60_000).await;
    let rows = all_rows(&*engine, 100).await;
    let kinds: BTreeSet<RowKind> = rows.keys().map(Key::kind).collect();
    for kind in [RowKind::Ticket, RowKind::Entry] {
        assert!(!kinds.contains(&kind), "{kind:?}: {rows:?}");
    }
    let first = all_rows(&*engine, 100).await.len();
    hall.joins("again").await;
    hall.wait(60_000).await;
    assert!(all_rows(&*engine, 100).await.len() <= first + 2, "no more than the minutes of the room");
}

/// Status polls that spend admission budget.
pub(super) async fn polls_spend_nothing<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"capacity": 10, "rate_per_s": 1})).await;
    let (ann, bob) = (hall.joins("ann").await, hall.joins("bob").await);
    assert_eq!((ann.state, bob.state), (Ready, Waiting));
    hall.wait(900).await;
    let before = all_rows(&*engine, 100).await;
    for _ in 0..50 {
        assert_eq!(hall.state(&bob.ticket).await, Waiting);
        assert_eq!(hall.beat(&bob.ticket).await.expect("it waits").position, Some(1));
    }
    assert_eq!(all_rows(&*engine, 100).await, before, "not a row is written");
    hall.wait(100).await;
    assert_eq!(hall.state(&bob.ticket).await, Ready, "its second is over");
}

/// Another's ticket handed to whoever names them.
pub(super) async fn nobody_gets_anothers_ticket_by_naming_them<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"mode": "hold", "join": "any"})).await;
    let hers = hall.join("ann", Some("hers")).await.expect("she may join");
    hall.auth = Arc::new(json!(null));
    for token in [None, Some("another")] {
        let other = hall.join("ann", token).await.expect("anybody may join");
        assert_ne!((&other.ticket, &other.subject), (&hers.ticket, &hers.subject), "{token:?}");
        assert_ne!(other.subject, subject("ann"));
    }
    hall.auth = Arc::new(json!({"kind": "user", "subject": "bob"}));
    assert_eq!(hall.join("ann", None).await.map_err(|refusal| refusal.code()), Err(Code::Forbidden));
    let forged = hers.ticket.replacen('1', "2", 1);
    assert_eq!(hall.ticket(&forged).await.map_err(|refusal| refusal.code()), Err(Code::TicketNotFound));
}

/// An expired ticket never regains its place, whatever its holder does.
pub(super) async fn a_place_that_is_lost_is_lost<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"mode": "hold", "idle_ttl_ms": 5_000})).await;
    let (ann, bob) = (hall.join("ann", Some("t")).await.expect("she may join"), hall.joins("bob").await);
    hall.wait(4_000).await;
    hall.beat(&bob.ticket).await.expect("he is there");
    hall.wait(1_000).await;
    assert_eq!(hall.beat(&ann.ticket).await.expect("it is still told").state, Expired);
    assert_eq!(hall.claim(&ann.ticket).await.map_err(|refusal| refusal.code()), Err(Code::TicketGone));
    assert_eq!(hall.join("ann", Some("t")).await.expect("a repeat has its ticket").state, Expired);
    let again = hall.join("ann", Some("another")).await.expect("she may join");
    assert_eq!((again.seq, again.position), (3, Some(2)), "behind everybody");
}

/// Stream ids of different streams compared as if they were one order: rooms have orders of their own, and nothing in common.
pub(super) async fn rooms_do_not_meet<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"mode": "hold"})).await;
    let other =
        tally_core::room::PutRoom { room: crate::sample::name("fair"), ..super::hall::put(&json!({"mode": "hold"})) };
    hall.ask(other).await.expect("a room can be made");
    for number in 0..6 {
        let room = if number % 2 == 0 { sale() } else { crate::sample::name("fair") };
        let join = Join { room, ..super::hall::joining("ann", None) };
        let join = Join { subject: Some(subject(&format!("s{number}"))), ..join };
        let ticket = hall.ask(join).await.expect("it may join");
        assert_eq!((ticket.seq, ticket.position), (number / 2 + 1, Some(number / 2 + 1)));
    }
    let admitted = hall.admit(3).await.expect("three may go in");
    assert_eq!((admitted.admitted, admitted.inside), (3, 3));
    let fair = (1..=3).map(|seq| ticket_key("fair", Seq::Given(seq))).collect();
    let rows = engine.load(&Wants::rows(fair)).await.expect("a load works").rows;
    assert!(rows.iter().flatten().filter_map(|row| row.ticket()).all(|ticket| ticket.state == Waiting), "{rows:?}");
}
