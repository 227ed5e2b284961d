//! Looks at the servers while they run: keys that should be dead, counts that should have moved.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::fleet::Fleet;
use crate::server::Server;

/// Whatever is lost, everything is known after so long.
pub(crate) const KNOWN_WITHIN: Duration = Duration::from_secs(60);
/// Where nothing is lost, it is known after so long.
const KNOWN_SOON: Duration = Duration::from_secs(2);
/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Looks until it is time to stop.
pub(crate) async fn watch(fleet: Arc<Fleet>, until: Instant) {
    let within = if fleet.world.plan.calm { KNOWN_SOON } else { KNOWN_WITHIN };
    while Instant::now() < until {
        sleep(LOOK_EVERY).await;
        for server in fleet.servers() {
            keys(&fleet, &server, within);
            // A server that has just begun has not read yet.
            if server.since.elapsed() > within {
                counts(&fleet, &server, within);
            }
        }
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
