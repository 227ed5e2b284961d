//! Looks at the servers while they run: keys that should be dead, counts that should have moved, rows that should be gone.

use std::sync::Arc;
use std::time::Duration;

use tally::core::Timestamp;
use tally::core::due::settling;
use tally::core::rows::{Partitions, RowKind};
use tally::engine::{Engine, Range, Together};
use tokio::time::{Instant, sleep};

use crate::fleet::Fleet;
use crate::server::Server;
use crate::{names, now};

/// Whatever is lost, everything is known after so long.
pub(crate) const KNOWN_WITHIN: Duration = Duration::from_secs(60);
/// Where nothing is lost, it is known after so long.
const KNOWN_SOON: Duration = Duration::from_secs(2);
/// How often to look for what is overdue: that is a look at every row.
const DUE_EVERY: Duration = Duration::from_secs(10);
/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Looks until it is time to stop.
pub(crate) async fn watch(fleet: Arc<Fleet>, until: Instant) {
    let within = if fleet.world.plan.calm { KNOWN_SOON } else { KNOWN_WITHIN };
    let mut due_at = Instant::now();
    while Instant::now() < until {
        sleep(LOOK_EVERY).await;
        if due_at <= Instant::now() {
            due(&fleet);
            due_at = Instant::now() + DUE_EVERY;
        }
        for server in fleet.servers() {
            keys(&fleet, &server, within);
            // A server that has just begun has not read yet.
            if server.since.elapsed() > within {
                counts(&fleet, &server, within);
            }
        }
    }
}

/// Whatever happens to the servers, what is due is done within a time: another one takes over.
fn due(fleet: &Fleet) {
    let (store, catalog) = (&fleet.world.store, names::catalog());
    let late = store.time().0.saturating_sub(KNOWN_WITHIN.as_millis() as u64);
    for kind in RowKind::ALL {
        let Some(settling) = settling(kind) else { continue };
        let range = Range::Due {
            kind,
            partitions: Partitions::ALL,
            from: settling.from,
            before: settling.before(Timestamp(late), &catalog),
        };
        let page = now(store.memory.scan(&range, 1)).expect("memory does not fail");
        if let Some((key, row)) = page.items.first() {
            store.problem(format!("{key:?} was due at {:?}, over {KNOWN_WITHIN:?} ago", row.due()));
        }
    }
}

/// When nothing has happened for long enough, all partitions are held, each by one server, and each server has its share.
pub(crate) fn shared(fleet: &Fleet) {
    let held: Vec<Partitions> =
        fleet.servers().iter().map(|server| *server.tally.engine().partitions().borrow()).collect();
    let all = held.iter().fold(Partitions::NONE, |all, some| all.with(*some));
    let (sum, least) = (held.iter().map(|some| some.len()).sum::<u32>(), held.iter().map(|some| some.len()).min());
    let most = held.iter().map(|some| some.len()).max();
    if all != Partitions::ALL || sum != all.len() || most > least.map(|least| least + 1) {
        fleet.world.store.problem(format!("the partitions are not shared: {held:?}"));
    }
}

fn keys(fleet: &Fleet, server: &Server, within: Duration) {
    let mut record = fleet.world.store.record();
    let alive = |(id, at): (&String, &Instant)| (at.elapsed() > within && server.ring.accepts(id)).then(|| id.clone());
    let alive: Vec<String> = record.revoked.iter().filter_map(alive).collect();
    for id in alive {
        record.problems.push(format!("key {id} works on server {} {within:?} after it was revoked", server.number));
    }
}

/// What is shown was true at some moment that is not too long ago.
fn counts(fleet: &Fleet, server: &Server, within: Duration) {
    let mut record = fleet.world.store.record();
    let mut stale = Vec::new();
    for (total, shown) in server.shown().iter() {
        let values = record.totals.get(total).map(Vec::as_slice).unwrap_or_default();
        let recent = values.iter().rev().take_while(|(at, _)| at.elapsed() <= within).count();
        // Those of late, and the one before them.
        let before = values.len().checked_sub(recent + 1).map_or(0, |last| values[last].1);
        let is_fresh = *shown == before || values[values.len() - recent..].iter().any(|(_, value)| value == shown);
        if !is_fresh {
            stale.push(format!("server {} shows {shown} for {total:?}, which is over {within:?} old", server.number));
        }
    }
    record.problems.extend(stale);
}
