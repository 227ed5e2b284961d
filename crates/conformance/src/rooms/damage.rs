//! Totals of a room that are damaged behind the rules' back are named and put right, and the room goes on.

use serde_json::json;
use tally_core::room::rows::RoomCount;
use tally_core::rows::TicketState::{Admitted, Ready, Waiting};

use super::hall::{Hall, sale};
use crate::EngineFactory;
use crate::driver::write;
use crate::stand::Stand;
use crate::verify::{findings, repairs, words};

pub(super) async fn totals_of_a_room_are_put_right<F: EngineFactory>(stand: Stand<F>) {
    for damage in [[3, 0], [-2, 0], [0, 2], [0, -1], [-3, -2]] {
        let stand = stand.another();
        let engine = stand.open().await;
        let mut hall = Hall::new(&*engine, json!({"capacity": 3, "rate_per_s": 1000})).await;
        let mut tickets = Vec::new();
        for number in 0..6 {
            tickets.push(hall.joins(&format!("s{number}")).await);
        }
        hall.claim(&tickets[0].ticket).await.expect("it is its turn");
        stand.drain(&engine).await;
        assert_eq!(findings(&*engine).await, [], "nothing is wrong before");
        let counts = [RoomCount::Inside, RoomCount::Ready].map(|count| count.of(&sale()));
        let off = counts.into_iter().zip(damage).filter(|(_, by)| *by != 0);
        write(&*engine, [], off.collect::<Vec<_>>()).await;
        let found = findings(&*engine).await;
        let wrong = damage.iter().filter(|by| **by != 0).count();
        assert_eq!(found.len(), wrong, "{damage:?}: {:?}", found.iter().map(words).collect::<Vec<_>>());
        for repair in repairs(&*engine, found).await {
            hall.run(repair).await.expect("it can be put right");
        }
        assert_eq!(findings(&*engine).await, [], "{damage:?}, after it was put right");
        // And the capacity holds, neither more nor less.
        hall.wait(61_000).await;
        assert_eq!(hall.states(&tickets).await, [Admitted, Ready, Ready, Waiting, Waiting, Waiting], "{damage:?}");
        hall.finish(&tickets[0].ticket).await.expect("it is inside");
        hall.wait(100).await;
        assert_eq!(hall.states(&tickets[1..5]).await, [Ready, Ready, Ready, Waiting], "{damage:?}");
    }
}
