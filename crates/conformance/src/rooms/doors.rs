//! What comes in between: somebody joins while the doors are being opened, a rate is raised while somebody waits.

use serde_json::json;
use tally_core::Timestamp;
use tally_core::rows::TicketState::{BeforeOpen, Ready, Waiting};

use super::hall::{Hall, START_MS};
use crate::EngineFactory;
use crate::stand::Stand;

/// Doors open in steps: who comes in the midst of it stands behind everybody who came early.
pub(super) async fn who_joins_while_the_doors_open_is_not_lost<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let opens_at = Timestamp(START_MS + 1_000);
    let settings = json!({"opens_at": opens_at, "before_open": "shuffle", "capacity": 3, "rate_per_s": 1000});
    let mut hall = Hall::new(&*engine, settings).await;
    let mut tickets = vec![hall.joins("ann").await, hall.joins("bob").await];
    assert!(tickets.iter().all(|ticket| ticket.state == BeforeOpen));
    hall.step(opens_at.0).await.expect("the doors open");
    let late = hall.joins("late").await;
    assert_eq!((late.seq, late.position), (3, None), "nobody stands anywhere yet");
    tickets.push(late);
    hall.wait(100).await;
    assert_eq!(hall.states(&tickets).await, [Ready; 3]);
}

/// What was saved up was saved up at the old rate.
pub(super) async fn a_higher_rate_is_not_paid_for_the_time_before<F: EngineFactory>(stand: Stand<F>) {
    let engine = stand.open().await;
    let mut hall = Hall::new(&*engine, json!({"capacity": 100, "rate_per_s": 0.01})).await;
    let mut tickets = Vec::new();
    for number in 0..30 {
        tickets.push(hall.joins(&format!("s{number}")).await);
    }
    hall.wait(50_000).await;
    assert_eq!(hall.states(&tickets).await[..2], [Ready, Waiting]);
    hall.put(json!({"capacity": 100, "rate_per_s": 10})).await.expect("it can be set");
    hall.wait(1_000).await;
    let inside = hall.states(&tickets).await.into_iter().filter(|state| *state == Ready).count();
    assert!((10..=12).contains(&inside), "{inside} are inside after a second of ten");
}
