//! Rooms of a server: does everybody who waits get in before their ticket ends?

use std::time::Duration;

use tally::core::room::read::RoomAnswer;
use tally_client::Client;
use tally_settings::duration_text;

use super::Report;
use crate::failure::Failure;

/// Looks at all rooms.
pub(super) async fn examine(client: &Client, report: &mut Report) {
    let rooms = match client.rooms().await {
        Ok(rooms) => rooms.items,
        Err(error) => return report.warn("rooms", Failure::from(error).text(), "see the server's log"),
    };
    let mut are_right = true;
    for room in &rooms {
        for (found, advice) in too_slow(room) {
            are_right = false;
            report.warn("rooms", found, advice);
        }
    }
    if are_right && !rooms.is_empty() {
        let waiting: u64 = rooms.iter().map(|room| room.waiting).sum();
        report.ok("rooms", format!("{}, with {waiting} waiting", rooms.len()));
    }
}

/// Why whoever waits last cannot get in, and what to do about it.
fn too_slow(room: &RoomAnswer) -> Vec<(String, String)> {
    let (name, settings, waiting) = (&room.room, &room.settings, u128::from(room.waiting));
    let ttl = duration_text(Duration::from_millis(settings.ticket_ttl_ms));
    let ends = |ms: u128| ms > u128::from(settings.ticket_ttl_ms);
    let mut found = Vec::new();
    if ends(waiting * 1_000_000_000 / u128::from(settings.rate_per_s.micros.max(1))) {
        let rate = settings.rate_per_s.per_s();
        found.push((
            format!(
                "`{name}`: at {rate} a second, some of its {waiting} tickets end after {ttl} before it is their turn"
            ),
            format!("tally room set {name} --rate N, or a longer --ticket-ttl"),
        ));
    }
    // If everybody stays as long as they may.
    let rounds = waiting / u128::from(settings.capacity.max(1));
    if ends(rounds * u128::from(settings.admission_ttl_ms)) {
        let (capacity, stay) = (settings.capacity, duration_text(Duration::from_millis(settings.admission_ttl_ms)));
        found.push((
            format!(
                "`{name}`: with {capacity} inside for up to {stay} each, some of its {waiting} tickets may end first"
            ),
            format!("tell Tally who is done, or: tally room set {name} --capacity N --admission-ttl TIME"),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn room(waiting: u64, more: serde_json::Value) -> RoomAnswer {
        let mut room = json!({
            "room": "sale", "waiting": waiting, "ready": 0, "admitted": 0, "joined": waiting, "version": 0, "open": true,
            "eta_ms": null, "seed_hash": "", "created_at": "2026-11-18T12:00:00Z", "as_of": "2026-11-18T12:00:00Z"
        });
        room.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(room).unwrap()
    }

    #[test]
    fn a_room_that_is_too_slow_for_its_tickets_is_named() {
        let cases = [
            (0, json!({}), 0),
            (1_000, json!({}), 0),
            (1_000_000, json!({"capacity": 100_000}), 1),
            (20_000, json!({}), 1),
            (1_000, json!({"rate_per_s": 0.01, "capacity": 10_000}), 1),
            (10_000_000, json!({}), 2),
        ];
        for (waiting, settings, findings) in cases {
            assert_eq!(too_slow(&room(waiting, settings.clone())).len(), findings, "{waiting} {settings}");
        }
    }
}
