//! Watching tickets: what is told, when it ends, and what many of them cost.

use std::sync::Arc;

use futures_util::future::join_all;
use tally::core::reply::TicketReply;
use tally::core::room::{Admit, Claim, DeleteRoom, Finish, Leave};
use tally::core::rows::TicketState;
use tally::engine::memory::Memory;
use tally::{Error, Options, Tally};

use super::world::{Counting, app, held, join, name, on};

#[tokio::test]
async fn a_watch_tells_every_state_until_it_is_over() {
    let engine = Arc::new(Memory::default());
    let tally = on(&engine).await;
    tally.put_room(&name("sale"), held()).await.unwrap();
    let (first, second) = (join(&tally, "sale", "alice").await, join(&tally, "sale", "bob").await);
    let mut watch = tally.watch_ticket(&second.room, &second.ticket, &app()).await.unwrap();
    let mut next = async || watch.next().await.map(|next| next.map(|next| (next.state, next.position)).unwrap());
    assert_eq!(next().await, Some((TicketState::Waiting, Some(2))));
    tally.ask(Leave { room: first.room, ticket: first.ticket }).await.unwrap();
    assert_eq!(next().await, Some((TicketState::Waiting, Some(1))));
    tally.ask(Admit { room: name("sale"), count: 1 }).await.unwrap();
    assert_eq!(next().await, Some((TicketState::Ready, None)));
    let (room, ticket) = (second.room, second.ticket);
    tally.ask(Claim { room: room.clone(), ticket: ticket.clone() }).await.unwrap();
    tally.ask(Finish { room, ticket }).await.unwrap();
    assert_eq!(next().await, Some((TicketState::Done, None)));
    assert_eq!(next().await, None);
    tally.close().await;
}

#[tokio::test]
async fn a_watch_ends_with_its_room_and_with_the_server_and_there_are_only_so_many() {
    let engine = Arc::new(Memory::default());
    let tally = Tally::on(engine, Options { subscriptions_max: 2, ..Options::default() }).await.unwrap();
    let mut watches = Vec::new();
    for room in ["one", "two"] {
        tally.put_room(&name(room), held()).await.unwrap();
        let ticket = join(&tally, room, "alice").await;
        watches.push(tally.watch_ticket(&ticket.room, &ticket.ticket, &app()).await.unwrap());
    }
    let third = join(&tally, "two", "bob").await;
    let too_many = tally.watch_ticket(&third.room, &third.ticket, &app()).await;
    assert!(matches!(too_many.err(), Some(Error::Overloaded)));
    for watch in &mut watches {
        assert!(watch.next().await.unwrap().is_ok());
    }
    tally.ask(DeleteRoom { room: name("one") }).await.unwrap();
    assert!(matches!(watches[0].next().await, Some(Err(Error::Refused(_)))));
    assert!(watches[0].next().await.is_none());
    watches.remove(0);
    let third = tally.watch_ticket(&third.room, &third.ticket, &app()).await.unwrap();
    assert_eq!(tally.hub().subscriptions(), 2);
    drop(third);
    let (closed, ended) = tokio::join!(tally.close(), watches[0].next());
    assert!(ended.is_none(), "{closed:?}");
}

#[tokio::test]
async fn ten_thousand_watches_cost_no_more_reads_than_a_few() {
    const WATCHES: usize = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let engine = Counting::open(&format!("embedded:{}", dir.path().display())).await;
    let tally = on(&engine).await;
    tally.put_room(&name("sale"), held()).await.unwrap();
    let mut watches = Vec::new();
    for part in 0..WATCHES / 100 {
        let joined = join_all((0..100).map(async |n| join(&tally, "sale", &format!("user-{part}-{n}")).await)).await;
        let begin =
            async |ticket: &TicketReply| tally.watch_ticket(&ticket.room, &ticket.ticket, &app()).await.unwrap();
        watches.extend(join_all(joined.iter().map(begin)).await);
    }
    let told = join_all(watches.iter_mut().map(async |watch| watch.next().await.unwrap().unwrap())).await;
    let mut rest: Vec<u64> = told.iter().filter_map(|told| told.position).collect();
    assert_eq!(rest.len(), WATCHES);
    // Until then a room may be read for the first time.
    super::world::warm(&tally, &told[WATCHES - 1]).await;
    let (all, of_tickets) = (engine.loads(), engine.ticket_loads());
    for round in 0..3 {
        tally.ask(Admit { room: name("sale"), count: 1 }).await.unwrap();
        let next = join_all(watches[round..].iter_mut().map(async |watch| watch.next().await.unwrap().unwrap())).await;
        assert_eq!(next[0].state, TicketState::Ready);
        rest = rest[1..].iter().map(|position| position - 1).collect();
        assert_eq!(next[1..].iter().filter_map(|next| next.position).collect::<Vec<_>>(), rest);
    }
    let (all, of_tickets) = (engine.loads() - all, engine.ticket_loads() - of_tickets);
    assert!(of_tickets <= 20, "{of_tickets} reads of tickets");
    assert!(all <= 200, "{all} reads");
    tally.close().await;
}
