//! Two servers on one store that they share, which tell each other.

use std::time::{Duration, Instant};

use tally::core::query::TicketQuery;
use tally::core::room::{Finish, RoomSettings};
use tally::core::rows::{Key, Partitions, TicketState};
use tally::engine::Together;
use tally::{Options, Tally};
use tally_testing::redis::Options as RedisOptions;
use tally_testing::{Redis, until};

use super::memory::positions_are_exact;
use super::world::{app, join, name};

/// Two servers, each with its share of what is due.
async fn two(redis: &Redis) -> [Tally; 2] {
    let open = async || Tally::open(&redis.url(), Options::default()).await.unwrap();
    let both = [open().await, open().await];
    for tally in &both {
        let mut held = tally.engine().partitions();
        let is_half = |held: &Partitions| held.len() * 2 == Partitions::ALL.len();
        held.wait_for(is_half).await.unwrap();
    }
    both
}

#[tokio::test]
async fn positions_are_exact_on_a_server_that_hears_of_them() {
    let redis = Redis::start(RedisOptions::default()).unwrap();
    let [writer, reader] = two(&redis).await;
    positions_are_exact(&writer, &reader, 60).await;
    writer.close().await;
    reader.close().await;
}

/// A server looks at its gates every two seconds. One that is told looks at once, so that these take a small part of that.
#[tokio::test]
async fn a_gate_that_another_server_has_opens_at_once() {
    const ROUNDS: usize = 10;
    let redis = Redis::start(RedisOptions::default()).unwrap();
    let [here, there] = two(&redis).await;
    let theirs = *there.engine().partitions().borrow();
    let mut rooms =
        (0..).map(|n| format!("room-{n}")).filter(|room| theirs.contains(Key::Gate(name(room)).partition()));
    let mut took = Duration::ZERO;
    for _ in 0..ROUNDS {
        let room = rooms.next().unwrap();
        here.put_room(&name(&room), RoomSettings { capacity: 1, ..RoomSettings::default() }).await.unwrap();
        let (inside, waits) = (join(&here, &room, "alice").await, join(&here, &room, "bob").await);
        assert_eq!((inside.state, waits.state), (TicketState::Ready, TicketState::Waiting));
        here.ask(Finish { room: name(&room), ticket: inside.ticket }).await.unwrap();
        let since = Instant::now();
        let query = TicketQuery { room: name(&room), ticket: waits.ticket };
        until("the next one is let in", async || {
            let state = here.query(&query, &app()).await.unwrap().state;
            (state != TicketState::Waiting).then_some(())
        })
        .await;
        took += since.elapsed();
    }
    assert!(took < ROUNDS as u32 * Duration::from_millis(600), "{took:?} for {ROUNDS}");
    here.close().await;
    there.close().await;
}
