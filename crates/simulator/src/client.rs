//! What clients do: the same few things, over and over, on any server.

use std::sync::Arc;
use std::time::Duration;

use tally::core::command::{Batch, Call, Command};
use tokio::time::{Instant, sleep};

use crate::fleet::Fleet;
use crate::names::{count, forget, once, put_key, relate, revoke_key, take, toggle, unrelate};

/// How long a storm of likes lasts.
const STORM: Duration = Duration::from_secs(4);
/// The like of a storm at which a key is revoked.
const REVOKED_AT: u64 = 50;

/// A client that asks for so many things, and waits for each.
pub(crate) async fn client(fleet: Arc<Fleet>, number: u64) {
    let random = fleet.world.store.random.clone();
    let pace_ms = fleet.world.plan.busy_for.as_millis() as u64 * 2 / fleet.world.plan.operations;
    for operation in 0..fleet.world.plan.operations {
        let meeting = meet(&fleet, pace_ms).await;
        let server = random.next() as usize;
        let name = format!("{number}-{operation}");
        let forgotten = *random.pick(&["f0", "f1"]);
        match meeting.map_or_else(|| random.below(20), |meeting| meeting * 7 % 20) {
            0..=5 => drop(fleet.ask(server, an_edge(&fleet, meeting), None).await),
            6 | 7 => drop(fleet.ask(server, alone(&fleet, meeting), None).await),
            8 => drop(fleet.ask(server, count("views", "plain"), None).await),
            9..=11 => until_answered(&fleet, count("views", "once"), &name).await,
            12 => {
                let commands = vec![count("views", "pair"), count("twin", "pair")];
                drop(fleet.ask(server, Command::from(Batch { atomic: true, commands }), None).await);
            }
            13 => drop(fleet.ask(server, take("door"), None).await),
            // Each has a row of its own, which is due soon, in any of the partitions.
            14 => drop(fleet.ask(server, take(&format!("door-{name}")), None).await),
            15 => {
                let command = if random.percent(50) { relate } else { unrelate }("shelf", "shelf:moves", "keeper");
                drop(fleet.ask(server, command, None).await);
            }
            16 | 17 => a_key(&fleet, &name).await,
            18 => drop(fleet.ask(server, forget(forgotten), None).await),
            _ => {
                let to = *random.pick(&["post:0", "post:1", "page:0", "page:1", "page:2"]);
                drop(fleet.ask(server, relate("like", to, forgotten), None).await);
            }
        }
    }
}

/// Waits for a while: half of the time for a moment at which the others do the same thing, at nearly the same time.
async fn meet(fleet: &Fleet, pace_ms: u64) -> Option<u64> {
    let random = &fleet.world.store.random;
    if random.percent(50) {
        sleep(random.between_ms(0, pace_ms)).await;
        return None;
    }
    let passed_ms = fleet.world.begin.elapsed().as_millis() as u64;
    let meeting = passed_ms / pace_ms + 1;
    sleep(Duration::from_millis(meeting * pace_ms - passed_ms)).await;
    sleep(random.between_ms(0, 6)).await;
    Some(meeting)
}

fn an_edge(fleet: &Fleet, meeting: Option<u64>) -> Command {
    let random = &fleet.world.store.random;
    let number = meeting.unwrap_or_else(|| random.next()) as usize;
    let (to, who) = (["post:0", "post:1", "post:2"][number % 3], ["u0", "u1", "u2"][number / 3 % 3]);
    random.pick(&[relate, unrelate, toggle])("like", to, who)
}

/// An edge of an object that nobody else ever touches.
fn alone(fleet: &Fleet, meeting: Option<u64>) -> Command {
    let random = &fleet.world.store.random;
    let to = ["solo:0", "solo:1"][meeting.unwrap_or_else(|| random.next()) as usize % 2];
    random.pick(&[relate, unrelate, toggle])("like", to, "hermit")
}

/// Sends one request, on any server, until it is answered; and sometimes once more.
async fn until_answered(fleet: &Fleet, command: Command, key: &str) {
    let random = fleet.world.store.random.clone();
    for _ in 0..30 {
        let answer = fleet.ask(random.next() as usize, command.clone(), Some(key)).await;
        if answer.is_some() {
            break;
        }
        sleep(random.between_ms(10, 500)).await;
    }
    if random.percent(40) {
        sleep(random.between_ms(1, 2_000)).await;
        drop(fleet.ask(random.next() as usize, command, Some(key)).await);
    }
}

/// Makes a key, and revokes it a while later. Sometimes whoever revokes goes away before it is told.
async fn a_key(fleet: &Arc<Fleet>, id: &str) {
    let random = fleet.world.store.random.clone();
    if fleet.ask(random.next() as usize, put_key(id), None).await.is_none() {
        return;
    }
    let (fleet, id) = (fleet.clone(), id.to_owned());
    tokio::spawn(async move {
        sleep(random.between_ms(1, 5_000)).await;
        let patience = random.between_ms(1, if random.percent(50) { 12 } else { 20_000 });
        drop(tokio::time::timeout(patience, fleet.ask(random.next() as usize, revoke_key(&id), None)).await);
    });
}

/// Likes without a pause on one server: others must hear of them all the same, and of a key that is revoked meanwhile.
/// Each like is somebody else's, so that a count which stands still is an old one; and each is remembered, so that there
/// is more to clean up than goes into one step.
pub(crate) async fn storm(fleet: Arc<Fleet>) {
    let random = fleet.world.store.random.clone();
    let key = format!("storm-{}", random.next());
    drop(fleet.ask(0, put_key(&key), None).await);
    // By then everyone knows it.
    sleep(Duration::from_secs(1)).await;
    let until = Instant::now() + STORM;
    for number in 0.. {
        if Instant::now() >= until {
            return;
        }
        if number == REVOKED_AT {
            let (fleet, key) = (fleet.clone(), key.clone());
            tokio::spawn(async move { fleet.ask(0, revoke_key(&key), None).await });
        }
        sleep(random.between_ms(3, 9)).await;
        let fleet = fleet.clone();
        tokio::spawn(async move {
            let who = format!("storm-{number}");
            let call = Call { once: Some(once(&who)), ..Call::system(relate("like", "post:0", &who)) };
            if let Some(server) = fleet.server(0) {
                // Nobody writes these down: there are too many, and the count tells.
                drop(server.apply(call).await);
            }
        });
    }
}
