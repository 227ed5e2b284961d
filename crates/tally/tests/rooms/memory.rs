//! Polls from memory are exact, free, and never run backwards.

use std::sync::Arc;

use tally::core::room::{Admit, BeforeOpen, DeleteRoom, Leave, RoomDef, RoomSettings};
use tally::core::rows::TicketState;
use tally::core::{Catalog, Refusal};
use tally::engine::Engine;
use tally::engine::memory::Memory;
use tally::{Error, Options, Tally};

use super::world::{Counting, Moved, app, held, join, name, on, poll, stored, version, warm};

#[tokio::test]
async fn a_poll_from_memory_reads_nothing() {
    let engine = Counting::open("memory:").await;
    let tally = on(&engine).await;
    tally.put_room(&name("sale"), held()).await.unwrap();
    let mut tickets = Vec::new();
    for n in 0..50 {
        tickets.push(join(&tally, "sale", &format!("user-{n}")).await);
    }
    assert_eq!(tally.rooms_followed(), 0, "nobody reads it");
    for ticket in &tickets {
        warm(&tally, ticket).await;
    }
    let (loads, polls) = (engine.ticket_loads(), tally.polls_from_store());
    for _ in 0..20 {
        for (place, ticket) in tickets.iter().enumerate() {
            let now = poll(&tally, ticket, None).await;
            assert_eq!((now.position, now.state), (Some(place as u64 + 1), TicketState::Waiting));
            assert_eq!((&now.ticket, &now.subject, now.joined_at), (&ticket.ticket, &ticket.subject, ticket.joined_at));
        }
    }
    assert_eq!((engine.ticket_loads(), tally.polls_from_store()), (loads, polls));
    assert_eq!(tally.rooms_followed(), 1);
    tally.close().await;
}

/// One server writes and another answers.
pub(crate) async fn positions_are_exact<E: Engine>(writer: &Tally<E>, reader: &Tally<E>, rounds: usize) {
    writer.put_room(&name("sale"), held()).await.unwrap();
    let (mut waiting, mut last) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        match round % 5 {
            3 if !waiting.is_empty() => {
                let left: tally::core::reply::TicketReply = waiting.remove(round * 7 % waiting.len());
                let (room, ticket) = (left.room.clone(), left.ticket.clone());
                writer.ask(Leave { room, ticket }).await.unwrap();
                let now = poll(reader, &left, Some(version(writer, "sale").await)).await;
                assert_eq!((now.state, now.position), (TicketState::Left, None));
            }
            4 => {
                let count = (round as u32 % 3) + 1;
                let admitted = writer.ask(Admit { room: name("sale"), count }).await.unwrap().admitted;
                let seen = version(writer, "sale").await;
                for ticket in waiting.drain(..admitted as usize) {
                    assert_eq!(poll(reader, &ticket, Some(seen)).await.state, TicketState::Ready);
                }
            }
            _ => waiting.push(join(writer, "sale", &format!("user-{round}")).await),
        }
        // Whoever has seen nothing may be told of a while ago, but never more than before.
        for (ticket, position) in &mut last {
            let now = poll(reader, ticket, None).await.position.unwrap_or(0);
            assert!(now <= *position, "{now} after {position}");
            *position = now;
        }
        let seen = version(writer, "sale").await;
        for (place, ticket) in waiting.iter().enumerate() {
            let now = poll(reader, ticket, Some(seen)).await;
            assert_eq!((now.position, now.state), (Some(place as u64 + 1), TicketState::Waiting), "round {round}");
            assert!(now.version >= seen);
        }
        last = waiting.iter().zip(1..).map(|(ticket, position)| (ticket.clone(), position)).collect();
    }
    assert!(reader.polls_from_memory() > reader.polls_from_store(), "mostly from memory");
}

/// All that the other one has is what the asker has seen.
#[tokio::test]
async fn positions_are_exact_on_a_server_that_hears_nothing() {
    let engine = Arc::new(Memory::default());
    let (writer, reader) = (on(&engine).await, on(&engine).await);
    positions_are_exact(&writer, &reader, 150).await;
    reader.close().await;
    writer.close().await;
}

#[tokio::test]
async fn positions_are_exact_on_the_embedded_store() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("embedded:{}", dir.path().display());
    let tally = Tally::open(&url, Options::default()).await.unwrap();
    positions_are_exact(&tally, &tally, 150).await;
    tally.close().await;
}

#[tokio::test]
async fn where_the_log_was_cut_the_queue_is_walked() {
    let (engine, clock) = (Arc::new(Memory::default()), Moved::default());
    let look_every = Some(std::time::Duration::from_millis(20));
    let options = Options { clock: Some(Arc::new(clock.clone())), look_every, ..Options::default() };
    let tally = Tally::on(engine, options).await.unwrap();
    let opens_at = Some(tally.now().plus_ms(60_000));
    let shuffled = RoomSettings { opens_at, before_open: BeforeOpen::Shuffle, ..held() };
    for (room, settings) in [("plain", held()), ("drawn", shuffled)] {
        tally.put_room(&name(room), settings).await.unwrap();
        let mut tickets = Vec::new();
        for n in 0..30 {
            tickets.push(join(&tally, room, &format!("user-{n}")).await);
        }
        clock.forward(120_000);
        // The doors open because time has passed.
        while stored(&tally, &tickets[0]).await.state != TicketState::Waiting {
            tokio::task::yield_now().await;
        }
        for n in [3, 4, 20] {
            let ticket = tickets[n].ticket.clone();
            tally.ask(Leave { room: name(room), ticket }).await.unwrap();
        }
        clock.forward(3_600_000);
        let kept = tally::engine::Range::due(tally::core::rows::RowKind::Gone, tally::core::Timestamp(u64::MAX));
        while !tally.engine().scan(&kept, 1).await.unwrap().items.is_empty() {
            tokio::task::yield_now().await;
        }
        let waits = |n: &usize| ![3, 4, 20].contains(n);
        for ticket in tickets.iter().enumerate().filter(|(n, _)| waits(n)).map(|(_, ticket)| ticket) {
            warm(&tally, ticket).await;
            let (memory, store) = (poll(&tally, ticket, None).await, stored(&tally, ticket).await);
            assert_eq!((memory.position, memory.version), (store.position, store.version), "{room}");
        }
        let order: Vec<u64> = tickets.iter().filter_map(|ticket| (ticket.seq > 25).then_some(ticket.seq)).collect();
        assert_eq!(order, [26, 27, 28, 29, 30]);
    }
    tally.close().await;
}

#[tokio::test]
async fn a_room_that_is_gone_is_told_so_and_one_that_is_made_anew_is_another() {
    let engine = Arc::new(Memory::default());
    let tally = on(&engine).await;
    tally.put_room(&name("sale"), held()).await.unwrap();
    let ticket = join(&tally, "sale", "alice").await;
    warm(&tally, &ticket).await;
    tally.ask(DeleteRoom { room: name("sale") }).await.unwrap();
    let gone = tally.ticket(&name("sale"), &ticket.ticket, None, &app()).await;
    assert!(matches!(gone, Err(Error::Refused(Refusal::RoomNotFound(_)))), "{gone:?}");
    while tally.put_room(&name("sale"), held()).await.is_err() {
        tokio::task::yield_now().await;
    }
    let again = join(&tally, "sale", "alice").await;
    assert_ne!(again.ticket, ticket.ticket);
    warm(&tally, &again).await;
    assert_eq!(poll(&tally, &again, None).await.position, Some(1));
    let old = tally.ticket(&name("sale"), &ticket.ticket, None, &app()).await;
    assert!(matches!(old, Err(Error::Refused(Refusal::TicketNotFound))), "{old:?}");
    tally.close().await;
}

#[tokio::test]
async fn what_is_declared_is_there_and_a_change_by_hand_stays() {
    let engine = Arc::new(Memory::default());
    let declaring = |capacity| {
        let mut catalog = Catalog::default();
        let settings = RoomSettings { capacity, ..held() };
        catalog.declare_room(name("sale"), RoomDef { name: name("sale"), settings });
        Options { catalog, ..Options::default() }
    };
    let capacity = async |tally: &Tally<Memory>| {
        let room = tally::core::query::RoomQuery { room: name("sale") };
        tally.query(&room, &app()).await.unwrap().settings.capacity
    };
    let first = Tally::on(engine.clone(), declaring(5)).await.unwrap();
    let ticket = join(&first, "sale", "alice").await;
    first.put_room(&name("sale"), RoomSettings { capacity: 7, ..held() }).await.unwrap();
    let again = Tally::on(engine.clone(), declaring(5)).await.unwrap();
    assert_eq!(capacity(&again).await, 7, "it says what it said before");
    let changed = Tally::on(engine, declaring(6)).await.unwrap();
    assert_eq!(capacity(&changed).await, 6);
    assert_eq!(poll(&changed, &ticket, None).await.position, Some(1), "its tickets are good");
    for tally in [first, again, changed] {
        tally.close().await;
    }
}
